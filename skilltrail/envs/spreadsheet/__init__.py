"""Environment `spreadsheet`: write code that changes a workbook as told."""
