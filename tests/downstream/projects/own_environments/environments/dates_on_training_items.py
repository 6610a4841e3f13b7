"""The same with a planted fault: it is evaluated on what it was trained on."""

from environments.dates_env import TRAINING, DatesEnv


class KnownDatesEnv(DatesEnv):
    async def get_eval_items(self):
        return [{"date": date} for date in TRAINING[:2]]


if __name__ == "__main__":
    KnownDatesEnv.cli()
