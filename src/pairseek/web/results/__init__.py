"""Results of studies: tables, bundles, codebook, data quality and findings."""
