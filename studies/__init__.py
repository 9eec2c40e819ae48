"""Everything a person looks at: the command line, figures, reports, and a folder for each study."""
