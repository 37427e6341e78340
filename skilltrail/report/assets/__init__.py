"""The page's template, styles and scripts; `skilltrail.report.page` puts them into one file."""
