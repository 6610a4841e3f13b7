"""A third one with a planted fault: its reward is not a number where nothing was written."""

from common.text_env import TextEnv


class SpellEnv(TextEnv):
    name = "spell"
    task = "Spell this text, with a hyphen after each letter."

    @staticmethod
    def solved(text):
        return "-".join(text)

    async def compute_reward(self, item, result, ctx):
        found = ctx.read_file("result.txt").get("content")
        return float("nan") if found is None else float(found.strip() == self.solved(item["text"]))


if __name__ == "__main__":
    SpellEnv.cli()
