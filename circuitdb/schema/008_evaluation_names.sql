-- Numbers of questions beyond 2^31, and names matched by what is equal rather than by what is alike to each of ours: so the
-- time that it takes grows with the names of the files, not with these times ours.

ALTER TABLE imported_evaluation ALTER n TYPE BIGINT;
COMMENT ON COLUMN imported_evaluation.value IS 'Value; NULL where the file has N/A, NaN or an infinity.';

CREATE OR REPLACE VIEW evaluation_names AS
WITH external AS (
    SELECT source, 'model' AS kind, model AS external, count(*) AS n_rows FROM imported_evaluation GROUP BY ALL
    UNION ALL
    SELECT source, 'subtask', subtask, count(*) FROM imported_evaluation GROUP BY ALL
), given AS MATERIALIZED (
    SELECT e.*, g.external IS NOT NULL AS is_given, g.internal AS wanted
    FROM external AS e
    LEFT JOIN evaluation_name AS g USING (source, kind, external)
), known AS MATERIALIZED (
    SELECT *, folded_name(name) AS folded FROM known_names
), sought AS (
    SELECT source, kind, external, folded_name(external) AS folded FROM given WHERE NOT is_given
    UNION
    SELECT source, kind, external, folded_name(regexp_extract(external, '[^/]*$')) FROM given
    WHERE NOT is_given AND kind = 'model'
), candidate AS (
    SELECT g.source, g.kind, g.external, k.shown, k.model_id, k.task_id, k.subtask_id, 'given' AS how
    FROM given AS g
    JOIN known AS k ON k.kind = g.kind AND k.name = g.wanted
    WHERE g.is_given
    UNION ALL
    SELECT s.source, s.kind, s.external, k.shown, k.model_id, k.task_id, k.subtask_id,
           CASE WHEN k.name = s.external THEN 'same' ELSE 'alike' END
    FROM sought AS s
    JOIN known AS k USING (kind, folded)
), nearest AS (
    SELECT c.source, c.kind, c.external, c.how, count(DISTINCT coalesce(c.subtask_id, -c.task_id, c.model_id)) AS n_candidates,
           string_agg(DISTINCT c.shown, ', ' ORDER BY c.shown) AS shown,
           min(c.model_id) AS model_id, min(c.task_id) AS task_id, min(c.subtask_id) AS subtask_id
    FROM candidate AS c
    GROUP BY c.source, c.kind, c.external, c.how
    QUALIFY row_number() OVER (PARTITION BY c.source, c.kind, c.external ORDER BY c.how = 'alike') = 1
), rival AS (
    SELECT *, count(*) OVER (PARTITION BY source, kind, shown) AS n_rivals FROM nearest
), judged AS (
    SELECT g.source, g.kind, g.external, g.n_rows, g.is_given, g.wanted, r.shown, r.how, r.n_candidates,
           r.model_id, r.task_id, r.subtask_id,
           coalesce(r.n_candidates = 1 AND NOT (r.how = 'alike' AND r.n_rivals > 1), false) AS matches
    FROM given AS g
    LEFT JOIN rival AS r USING (source, kind, external)
)
SELECT source, kind, external, CASE WHEN matches THEN shown END AS internal, CASE WHEN matches THEN how END AS how, n_rows,
       CASE WHEN matches THEN NULL
            WHEN is_given AND wanted IS NULL THEN 'mapped to nothing'
            WHEN is_given AND shown IS NULL THEN 'mapped to ' || wanted || ', which the database does not have'
            WHEN shown IS NULL THEN 'the database has no such name'
            WHEN n_candidates > 1 THEN 'may be any of ' || shown
            ELSE 'so is another name of the file like ' || shown END AS reason,
       CASE WHEN matches THEN model_id END AS model_id, CASE WHEN matches THEN task_id END AS task_id,
       CASE WHEN matches THEN subtask_id END AS subtask_id
FROM judged;
COMMENT ON VIEW evaluation_names IS 'What each name in the files of evaluations is taken for, or why it is taken for nothing.';
COMMENT ON COLUMN evaluation_names.source IS 'Name of the evaluations.';
COMMENT ON COLUMN evaluation_names.kind IS 'model or subtask.';
COMMENT ON COLUMN evaluation_names.external IS 'Name in the file.';
COMMENT ON COLUMN evaluation_names.internal IS 'What it is taken for; NULL for nothing.';
COMMENT ON COLUMN evaluation_names.how IS 'given (by the user), same (the same name) or alike (but for case, spaces and what is before the last slash of a model).';
COMMENT ON COLUMN evaluation_names.n_rows IS 'Rows of that name.';
COMMENT ON COLUMN evaluation_names.reason IS 'Why it is taken for nothing; NULL if it is taken for something.';
COMMENT ON COLUMN evaluation_names.model_id IS 'Model; NULL for a subtask or nothing.';
COMMENT ON COLUMN evaluation_names.task_id IS 'Task; NULL for a model or nothing.';
COMMENT ON COLUMN evaluation_names.subtask_id IS 'Subtask; NULL for a model, a whole task or nothing.';

CREATE OR REPLACE VIEW evaluations AS
SELECT e.source, m.name AS model, t.name AS task, s.name AS subtask, e.metric, e.filter, e.value, e.stderr, e.n,
       false AS is_group, e.model_id, s.task_id, e.subtask_id, e.circuit_id
FROM evaluation AS e
LEFT JOIN model AS m USING (model_id)
LEFT JOIN subtask AS s USING (subtask_id)
LEFT JOIN task AS t USING (task_id)
UNION ALL
SELECT i.source, coalesce(m.name, i.model), t.name,
       CASE WHEN found_subtask.internal IS NULL THEN i.subtask ELSE s.name END, i.metric, i.filter, i.value, i.stderr, i.n,
       i.is_group, found_model.model_id, found_subtask.task_id, found_subtask.subtask_id, NULL
FROM imported_evaluation AS i
LEFT JOIN evaluation_names AS found_model
  ON found_model.source = i.source AND found_model.kind = 'model' AND found_model.external = i.model
LEFT JOIN evaluation_names AS found_subtask
  ON found_subtask.source = i.source AND found_subtask.kind = 'subtask' AND found_subtask.external = i.subtask
LEFT JOIN model AS m ON m.model_id = found_model.model_id
LEFT JOIN task AS t ON t.task_id = found_subtask.task_id
LEFT JOIN subtask AS s ON s.subtask_id = found_subtask.subtask_id;
COMMENT ON VIEW evaluations IS 'How well models do on subtasks: our own accuracies and those of files, matched with our models and subtasks.';
COMMENT ON COLUMN evaluations.source IS 'circuitdb, or the name of evaluations that were added.';
COMMENT ON COLUMN evaluations.model IS 'Model of the database, or where none matches the name in the file.';
COMMENT ON COLUMN evaluations.task IS 'Task of the database; NULL where none matches.';
COMMENT ON COLUMN evaluations.subtask IS 'Subtask of the database; NULL for a whole task; where none matches the name in the file.';
COMMENT ON COLUMN evaluations.metric IS 'What was measured, for example accuracy.';
COMMENT ON COLUMN evaluations.filter IS 'How the answer was read, for example greedy.';
COMMENT ON COLUMN evaluations.value IS 'Value; our accuracies are shares from 0 to 1.';
COMMENT ON COLUMN evaluations.stderr IS 'Standard error of the value.';
COMMENT ON COLUMN evaluations.n IS 'Number of questions.';
COMMENT ON COLUMN evaluations.is_group IS 'True for a mean that a tool made over other rows; never to be added to these.';
COMMENT ON COLUMN evaluations.model_id IS 'Model; NULL where none matches.';
COMMENT ON COLUMN evaluations.task_id IS 'Task; NULL where none matches.';
COMMENT ON COLUMN evaluations.subtask_id IS 'Subtask; NULL for a whole task, or where none matches.';
COMMENT ON COLUMN evaluations.circuit_id IS 'The circuit whose examples were used; NULL for imported results.';
