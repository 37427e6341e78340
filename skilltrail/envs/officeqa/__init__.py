"""Environment `officeqa`: questions about long documents, with tools to search them."""
