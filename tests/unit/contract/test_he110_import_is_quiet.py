"""HE110: importing the file changes nothing."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, sound

ENV = "\nclass Env(HermesAgentBaseEnv):\n    name = 'maze'\n"
PATH = "importing the file changes sys.path"
VARIABLE = "importing the file sets an environment variable"

CASES = (
    broken(
        "upstream's prelude",
        "import sys\nfrom pathlib import Path\n\n_root = Path(__file__).resolve().parent.parent\nif str(_root) not in sys.path:\n"
        "    sys.path.insert(0, str(_root))  # <- here\n" + ENV,
        PATH,
    ),
    broken(
        "sys.path in other words",
        "import sys as s\nfrom sys import path\n\ns.path += ['x']  # <- here\ns.path[:0] = ['x']  # <- here\npath.append('x')  # <- here\n"
        + ENV,
        PATH,
        PATH,
        PATH,
    ),
    broken(
        "variables",
        "import os\nfrom os import environ as e\n\nos.environ['A'] = 'b'  # <- here\ne.setdefault('A', 'b')  # <- here\ndel e['A']  # <- here\n"
        + ENV,
        VARIABLE,
        VARIABLE,
        VARIABLE,
    ),
    broken(
        "dotenv",
        "from dotenv import load_dotenv\n\nload_dotenv()  # <- here\n" + ENV,
        "importing the file changes environment variables",
    ),
    broken(
        "a dataset",
        "from datasets import load_dataset\n\nROWS = load_dataset('squad')['train']  # <- here\n" + ENV,
        "importing the file uses the network",
    ),
    broken(
        "in the class body",
        "import requests\n\nclass Env(HermesAgentBaseEnv):\n    rows = requests.get('http://x').json()  # <- here\n",
        "importing the file uses the network",
    ),
    broken(
        "files",
        "import os\nfrom pathlib import Path\n\nOUT = Path('out')\nOUT.mkdir(exist_ok=True)  # <- here\nopen('a.log', 'w').close()  # <- here\nos.makedirs('x')  # <- here\n"
        + ENV,
        "importing the file changes files",
        "importing the file writes a file",
        "importing the file changes files",
    ),
    broken(
        "a process",
        "import subprocess\n\nsubprocess.run(['ls'], check=False)  # <- here\n" + ENV,
        "importing the file starts a process",
    ),
    broken(
        "a thread",
        "import threading\nfrom threading import Timer\n\nthreading.Thread(target=print).start()  # <- here\n"
        "BEAT = Timer(1.0, print)\nBEAT.start()  # <- here\n" + ENV,
        "importing the file starts a thread or a process",
        "importing the file starts a thread or a process",
    ),
    broken(
        "in a function that the import calls",
        "import os\n\ndef prepare():\n    os.chdir('/')  # <- here\n\nprepare()\n" + ENV,
        "importing the file changes the working directory",
    ),
    broken(
        "in a try",
        "import wandb\n\ntry:\n    wandb.login()  # <- here\nexcept Exception:\n    pass\n" + ENV,
        "importing the file logs in to a service",
    ),
    sound(
        "under the block, and in functions",
        "import os, sys\n\ndef later():\n    os.environ['A'] = 'b'\n"
        + ENV
        + "    async def setup(self):\n        sys.path.append('x')\n\n"
        "if __name__ == '__main__':\n    os.environ.setdefault('WANDB_MODE', 'offline')\n    later()\n    Env.cli()\n",
    ),
    sound(
        "reading",
        "import json, os, sys, threading\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\nHOME = os.environ.get('HOME')\nROWS = json.loads((HERE / 'x').read_text()) if 0 else open('x').read\npath = list(sys.path)\npath.append('x')\nGAME = Game()\nGAME.start()\nLATER = threading.Thread(target=print)\nlogger.info('read')\n"
        + ENV,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_import_is_quiet(judge, case):
    check(judge, "HE110", case)
