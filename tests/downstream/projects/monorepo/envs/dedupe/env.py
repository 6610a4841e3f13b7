from common.text_env import TextEnv


class DedupeEnv(TextEnv):
    name = "dedupe"
    task = "Remove words that were there before."

    @staticmethod
    def solved(text):
        return " ".join(dict.fromkeys(text.split()))


if __name__ == "__main__":
    DedupeEnv.cli()
