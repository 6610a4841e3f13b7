from common.text_env import TextEnv


class SortEnv(TextEnv):
    name = "sort"
    task = "Sort the words of this text."

    @staticmethod
    def solved(text):
        return " ".join(sorted(text.split()))


if __name__ == "__main__":
    SortEnv.cli()
