"""Programs that set up a cell and run in it. They import nothing but the standard library and each other."""
