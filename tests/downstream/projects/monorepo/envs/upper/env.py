from common.text_env import TextEnv


class UpperEnv(TextEnv):
    name = "upper"
    task = "Write this text in capitals."

    @staticmethod
    def solved(text):
        return text.upper()


if __name__ == "__main__":
    UpperEnv.cli()
