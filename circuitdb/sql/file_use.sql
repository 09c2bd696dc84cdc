-- question: How large is a block of the attached database `source`, and how many bytes have all blocks and the free ones?
-- columns: block_size, n_bytes, n_free
SELECT block_size, block_size * total_blocks AS n_bytes, block_size * free_blocks AS n_free
FROM pragma_database_size()
WHERE database_name = 'source'
