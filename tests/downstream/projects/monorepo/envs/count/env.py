from common.text_env import TextEnv


class CountEnv(TextEnv):
    name = "count"
    task = "Count the words of this text."

    @staticmethod
    def solved(text):
        return str(len(text.split()))


if __name__ == "__main__":
    CountEnv.cli()
