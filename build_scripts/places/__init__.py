"""Where the wheel of users runs: strangers' pages, notebooks and interpreters, each set up as its own users do.

`guest_site` serves such pages, `probe` is what every place is asked to compute; `survey` is the verb. Nothing here is
part of the site.
"""
