from common.text_env import TextEnv


class ReverseEnv(TextEnv):
    name = "reverse"
    task = "Reverse this text."

    @staticmethod
    def solved(text):
        return text[::-1]


if __name__ == "__main__":
    ReverseEnv.cli()
