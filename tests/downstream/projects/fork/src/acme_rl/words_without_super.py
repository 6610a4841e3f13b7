"""The same with a planted fault: what the base logs is lost."""

from .words import WordsEnv


class SilentWordsEnv(WordsEnv):
    async def wandb_log(self, wandb_metrics=None):
        self.logged = {"train/mean_reward": sum(self.rewards), **(wandb_metrics or {})}
        self.rewards = []


if __name__ == "__main__":
    SilentWordsEnv.cli()
