"""An author's own cases: transcripts of known quality that HE405 and HE410 play and compare.

`declaring` is how a test file says them, `yaml_file` reads them from beside the environment, `finding` looks for that file,
`ladder` sums up what they earned, `starting` writes the first version of the file.
"""
