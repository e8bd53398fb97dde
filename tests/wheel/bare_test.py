"""The wheel where only Python is installed: the module, the program with all of its verbs, and the libraries of the solvers."""

import csv
import re
import shutil
import subprocess
import unittest

import ftax


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["ftax", *arguments], capture_output=True, text=True, check=False)


class Bare(unittest.TestCase):
    def test_nothing_of_the_build_is_here(self):
        for tool in ("cc", "g++", "cmake"):
            self.assertIsNone(shutil.which(tool), tool)
        self.assertNotRegex(subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout if shutil.which("ldconfig") else "",
                            "libzip|libfmt|libglog|liblapack")

    def test_the_module_predicts(self):
        first, second = ftax.predict("resnet50", "t4", batch=[1, 64])
        self.assertLess(first.latency_s, second.latency_s)

    def test_the_program_says_what_the_module_says(self):
        done = run("predict", "resnet50", "--device", "t4", "--batch", "64", "--csv", "-", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = next(csv.DictReader(done.stdout.splitlines()))
        self.assertAlmostEqual(float(row["latency_s"]), ftax.predict("resnet50", "t4", batch=64)[0].latency_s, places=9)

    def test_every_verb_is_here(self):
        verbs = re.findall(r"^  (\w+) ", run("--help").stdout.split("Subcommands:")[1].split("Examples:")[0], re.MULTILINE)
        self.assertTrue({"predict", "compare", "generate", "measure", "fit", "calibrate", "nas"} <= set(verbs), verbs)
        for verb in verbs:
            self.assertEqual(run(verb, "--help").returncode, 0, verb)

    def test_frameworks_are_measured_in_this_python(self):
        done = run("calibrate", "--device", "cpu", "--framework", "pytorch-eager", "--quick", "-o", "/tmp/calibrated")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "torch")


if __name__ == "__main__":
    unittest.main()
