-- question: In how many row groups and blocks does a table lie?
-- parameters:
--   $table: its name as a literal; DuckDB takes no parameter there
-- columns: n_row_groups, n_blocks
SELECT count(DISTINCT row_group_id) AS n_row_groups,
       coalesce(len(list_distinct(flatten(list(list_concat([block_id], additional_block_ids)) FILTER (block_id >= 0)))), 0) AS n_blocks
FROM pragma_storage_info($table)
