"""What a run concluded and accepted: the ledger of a class, and the waivers and settings that it is made with."""
