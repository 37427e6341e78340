"""The page's template, styles and scripts; `reports.page` puts them into one file."""
