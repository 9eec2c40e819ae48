"""Everything a person looks at: the command line, figures, reports, and one folder a study."""
