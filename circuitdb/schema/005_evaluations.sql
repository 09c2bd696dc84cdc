-- Evaluations from elsewhere: their rows as the files name them, and views that match these names with ours whenever they
-- are asked. So a model that is ingested later, or a name that the user maps by hand, counts at once.

CREATE SCHEMA evals;

CREATE TABLE evaluation_source (
    source VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    files VARCHAR[] NOT NULL,
    n_rows INTEGER NOT NULL,
    added_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON TABLE evaluation_source IS 'Evaluations that were added from files, one row a name.';
COMMENT ON COLUMN evaluation_source.source IS 'Name that the user gave; a table of the files, as it was, is evals.NAME.';
COMMENT ON COLUMN evaluation_source.format IS 'csv, json, parquet, arrow, duckdb, sqlite, lm-eval or inspect_ai.';
COMMENT ON COLUMN evaluation_source.files IS 'Files, with their full paths.';
COMMENT ON COLUMN evaluation_source.n_rows IS 'Rows of imported_evaluation.';
COMMENT ON COLUMN evaluation_source.added_at IS 'When they were added.';

CREATE TABLE imported_evaluation (
    source VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    subtask VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    filter VARCHAR,
    value DOUBLE,
    stderr DOUBLE,
    n INTEGER,
    is_group BOOLEAN NOT NULL,
    file VARCHAR NOT NULL
);
COMMENT ON TABLE imported_evaluation IS 'Evaluations from files, in the names of the files; evaluations has them matched.';
COMMENT ON COLUMN imported_evaluation.source IS 'Name of the evaluations.';
COMMENT ON COLUMN imported_evaluation.model IS 'Model as the file names it.';
COMMENT ON COLUMN imported_evaluation.subtask IS 'Subtask or task as the file names it.';
COMMENT ON COLUMN imported_evaluation.metric IS 'What was measured.';
COMMENT ON COLUMN imported_evaluation.filter IS 'How the answer was read; NULL where the file does not say.';
COMMENT ON COLUMN imported_evaluation.value IS 'Value; NULL where the file has N/A or NaN.';
COMMENT ON COLUMN imported_evaluation.stderr IS 'Standard error of the value.';
COMMENT ON COLUMN imported_evaluation.n IS 'Number of questions.';
COMMENT ON COLUMN imported_evaluation.is_group IS 'True for a mean that the tool made over other rows; never to be added to these.';
COMMENT ON COLUMN imported_evaluation.file IS 'File it came from.';

CREATE TABLE evaluation_name (
    source VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    external VARCHAR NOT NULL,
    internal VARCHAR
);
COMMENT ON TABLE evaluation_name IS 'The user''s own word on what a name in a file stands for; it goes before any likeness of names.';
COMMENT ON COLUMN evaluation_name.source IS 'Name of the evaluations.';
COMMENT ON COLUMN evaluation_name.kind IS 'model or subtask.';
COMMENT ON COLUMN evaluation_name.external IS 'Name in the file.';
COMMENT ON COLUMN evaluation_name.internal IS 'Model, subtask or task of the database, as known_names has it; NULL for none.';

CREATE MACRO folded_name(name) AS lower(regexp_replace(name, '\s+', '', 'g'));
COMMENT ON MACRO folded_name IS 'A name without its spaces and in small letters: names that differ in these alone are alike.';

CREATE VIEW known_names AS
WITH namesake AS (
    SELECT name, count(*) AS n, count(DISTINCT revision) AS n_revisions, count(DISTINCT left(weights_digest, 8)) AS n_digits
    FROM model
    GROUP BY name
), model_form AS (
    SELECT model_id, name, revision, left(weights_digest, 8) AS digits,
           CASE WHEN n = 1 THEN name
                WHEN n_revisions = n THEN name || '@' || revision
                WHEN n_digits = n THEN name || '@' || left(weights_digest, 8)
                ELSE name || '#' || model_id END AS shown
    FROM model
    JOIN namesake USING (name)
), subtask_form AS (
    SELECT s.subtask_id, s.task_id, s.name, t.name AS task FROM subtask AS s JOIN task AS t USING (task_id)
)
SELECT DISTINCT 'model' AS kind, form.name, m.shown, m.model_id, NULL::INTEGER AS task_id, NULL::INTEGER AS subtask_id
FROM model_form AS m, unnest([m.name, m.shown, m.name || '@' || m.revision, m.name || '@' || m.digits]) AS form(name)
WHERE form.name IS NOT NULL
UNION ALL
SELECT DISTINCT 'subtask', form.name, s.task || '/' || s.name, NULL, s.task_id, s.subtask_id
FROM subtask_form AS s, unnest([s.name, s.task || '/' || s.name, s.task || ':' || s.name, s.task || '_' || s.name]) AS form(name)
UNION ALL
SELECT 'subtask', name, name, NULL, task_id, NULL
FROM task;
COMMENT ON VIEW known_names IS 'Every name that a model, a subtask or a whole task of the database goes by.';
COMMENT ON COLUMN known_names.kind IS 'model or subtask; a whole task counts as a subtask.';
COMMENT ON COLUMN known_names.name IS 'A name: that of a model also with @revision or @digest, that of a subtask also with its task before it.';
COMMENT ON COLUMN known_names.shown IS 'The name by which it is listed.';
COMMENT ON COLUMN known_names.model_id IS 'Model; NULL for a subtask.';
COMMENT ON COLUMN known_names.task_id IS 'Task; NULL for a model.';
COMMENT ON COLUMN known_names.subtask_id IS 'Subtask; NULL for a model and for a whole task.';

CREATE VIEW evaluation_names AS
WITH external AS (
    SELECT source, 'model' AS kind, model AS external, count(*) AS n_rows FROM imported_evaluation GROUP BY ALL
    UNION ALL
    SELECT source, 'subtask', subtask, count(*) FROM imported_evaluation GROUP BY ALL
), given AS (
    SELECT e.*, g.external IS NOT NULL AS is_given, g.internal AS wanted
    FROM external AS e
    LEFT JOIN evaluation_name AS g USING (source, kind, external)
), candidate AS (
    SELECT g.source, g.kind, g.external, k.shown, k.model_id, k.task_id, k.subtask_id,
           CASE WHEN g.is_given THEN 'given' WHEN k.name = g.external THEN 'same' ELSE 'alike' END AS how
    FROM given AS g
    JOIN known_names AS k
      ON k.kind = g.kind
     AND CASE WHEN g.is_given THEN k.name = g.wanted
              ELSE folded_name(k.name) = folded_name(g.external)
                OR (g.kind = 'model' AND folded_name(k.name) = folded_name(regexp_extract(g.external, '[^/]*$')))
         END
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

CREATE VIEW evaluations AS
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
