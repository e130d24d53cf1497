"""Whether the tests notice: small mistakes put into the code, one at a time, and the tests that run on them.

`python_mutants` and `text_mutants` make the mistakes, `making` draws the sample, `recording` says which test runs which
line, `selection` picks the tests of a mutant, `trees` runs them on copies of the checkout, `survey` is the verb.
Nothing here is part of `test`.
"""
