"""HE109: the file starts the environment."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, sound

ENV = "class Env(HermesAgentBaseEnv):{mark}\n    async def setup(self): ...\n\n"
HERE = ENV.format(mark="  # <- here")
THERE = ENV.format(mark="")

CASES = (
    broken("nothing", HERE, 'no if __name__ == "__main__": block: `python env.py serve` would do nothing'),
    broken(
        "a block that does something else",
        HERE + 'if __name__ == "__main__":\n    print("hello")\n',
        'the block under if __name__ == "__main__" does not call cli(): `python env.py serve` would do nothing',
    ),
    broken(
        "another name for the module",
        THERE + 'if __name__ == "main":  # <- here\n    Env.cli()\n',
        """__name__ is compared with 'main', not with "__main__", so cli() is never called: `python env.py serve` would do nothing""",
    ),
    broken(
        "without the if",
        THERE + "Env.cli()  # <- here\n",
        "cli() is called when the file is imported, not only when it is run",
    ),
    broken(
        "another class",
        HERE + "class Sibling(HermesAgentBaseEnv): ...\n\nif __name__ == '__main__':\n    Sibling.cli()\n",
        "the file starts Sibling, but nothing starts Env",
    ),
    sound("the block", THERE + 'if __name__ == "__main__":\n    Env.cli()\n'),
    sound("the other way round", THERE + 'if "__main__" == __name__:\n    Env.cli()\n'),
    sound(
        "in a function",
        THERE + 'def main():\n    prepare()\n    Env.cli()\n\ndef prepare(): ...\n\nif __name__ == "__main__":\n    main()\n',
    ),
    sound("one of several", THERE + 'ENVS = {"env": Env}\n\nif __name__ == "__main__":\n    ENVS["env"].cli()\n'),
    sound("handed over", THERE + 'if __name__ == "__main__":\n    raise SystemExit(Env.cli)\n'),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_starts_its_environment(judge, case):
    check(judge, "HE109", case)
