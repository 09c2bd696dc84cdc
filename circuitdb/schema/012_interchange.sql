-- Circuits that came out of other tools' files: what the file does not say is NULL, where it came from is kept, and what
-- has only membership, no scores, is a hard circuit.

ALTER TABLE model ALTER COLUMN architecture DROP NOT NULL;
ALTER TABLE model ALTER COLUMN n_kv_heads DROP NOT NULL;
ALTER TABLE model ALTER COLUMN d_model DROP NOT NULL;
ALTER TABLE circuit ALTER COLUMN method DROP NOT NULL;
ALTER TABLE circuit ALTER COLUMN metric DROP NOT NULL;
ALTER TABLE circuit ALTER COLUMN positions DROP NOT NULL;
ALTER TABLE circuit ALTER COLUMN ablation DROP NOT NULL;
ALTER TABLE circuit ALTER COLUMN sign_convention DROP NOT NULL;
COMMENT ON COLUMN model.architecture IS 'Class of the Hugging Face model; NULL where an imported file does not say.';
COMMENT ON COLUMN model.n_kv_heads IS 'Key-value heads of a layer, fewer than n_heads under grouped-query attention; NULL where an imported file does not say.';
COMMENT ON COLUMN model.d_model IS 'Width of the residual stream; NULL where an imported file does not say.';
COMMENT ON COLUMN circuit.method IS 'Attribution method, for example eap-ig; NULL where an imported file does not say.';
COMMENT ON COLUMN circuit.metric IS 'Metric that was attributed: kl (from clean to run, in nats), logit-difference, prob-difference, nll, kl-published or a user''s own; NULL where an imported file does not say.';
COMMENT ON COLUMN circuit.positions IS 'Scored positions: last (of the prompt), answer (those that predict the answer''s tokens) or all (those that predict any token after the prompt); NULL where an imported file does not say.';
COMMENT ON COLUMN circuit.ablation IS 'What an edge is replaced by: patching (the corrupted run), zero, mean (over prompts and positions) or mean-positional; NULL where an imported file does not say.';
COMMENT ON COLUMN circuit.sign_convention IS 'ablated-minus-clean: a positive score means that ablating the edge raises the metric; NULL where an imported file does not say.';
COMMENT ON COLUMN circuit.origin IS 'ingest, or the tool whose file it was imported from.';
COMMENT ON COLUMN circuit.n_nonfinite IS 'Scores that are NULL: not finite, or missing in the imported file.';
COMMENT ON COLUMN circuit.started_at IS 'When scoring began; NULL where an imported file does not say.';
COMMENT ON COLUMN edge_score.score IS 'Change of the mean metric when the edge is ablated (to first order, unless the method is exact); NULL where it was not finite, or missing in the imported file.';

CREATE TABLE imported_hard_circuit (
    hard_id INTEGER PRIMARY KEY,
    circuit_id INTEGER,
    model_id INTEGER NOT NULL,
    subtask_id INTEGER NOT NULL,
    graph_id INTEGER NOT NULL,
    origin VARCHAR NOT NULL,
    method VARCHAR,
    share DOUBLE,
    n_edges INTEGER NOT NULL,
    member_digest VARCHAR NOT NULL,
    spec_digest VARCHAR NOT NULL,
    spec JSON NOT NULL
);
COMMENT ON TABLE imported_hard_circuit IS 'A hard circuit that was imported: which edges are in it, as its file has it. Cuts of stored scores are made when asked.';
COMMENT ON COLUMN imported_hard_circuit.hard_id IS 'Key.';
COMMENT ON COLUMN imported_hard_circuit.circuit_id IS 'The soft circuit of the same file; NULL where the file has no scores.';
COMMENT ON COLUMN imported_hard_circuit.model_id IS 'Model.';
COMMENT ON COLUMN imported_hard_circuit.subtask_id IS 'Subtask.';
COMMENT ON COLUMN imported_hard_circuit.graph_id IS 'Graph shape.';
COMMENT ON COLUMN imported_hard_circuit.origin IS 'The tool whose file it was imported from.';
COMMENT ON COLUMN imported_hard_circuit.method IS 'Method that found it; NULL where the file does not say.';
COMMENT ON COLUMN imported_hard_circuit.share IS 'Share of the graph''s edges that it was cut for, in a MIB submission; NULL elsewhere.';
COMMENT ON COLUMN imported_hard_circuit.n_edges IS 'Edges in it.';
COMMENT ON COLUMN imported_hard_circuit.member_digest IS 'SHA-256 of its edge ids (int32, little endian, rising): equal digests are equal hard circuits of one graph.';
COMMENT ON COLUMN imported_hard_circuit.spec_digest IS 'SHA-256 of spec: the key by which an import is not repeated.';
COMMENT ON COLUMN imported_hard_circuit.spec IS 'What tells it apart: digest and part of the file, and the names it was imported under.';

CREATE TABLE hard_circuit_edge (
    hard_id INTEGER NOT NULL,
    edge_id INTEGER NOT NULL
);
COMMENT ON TABLE hard_circuit_edge IS 'The edges of hard circuits, in (hard_id, edge_id) order.';
COMMENT ON COLUMN hard_circuit_edge.hard_id IS 'Hard circuit.';
COMMENT ON COLUMN hard_circuit_edge.edge_id IS 'Edge of its graph.';

CREATE TABLE imported_file (
    circuit_id INTEGER,
    hard_id INTEGER,
    tool VARCHAR NOT NULL,
    dialect VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    part VARCHAR,
    n_missing INTEGER NOT NULL,
    imported_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON TABLE imported_file IS 'Where imported circuits came from, one row a soft or hard circuit.';
COMMENT ON COLUMN imported_file.circuit_id IS 'Soft circuit; NULL where this is about a hard one.';
COMMENT ON COLUMN imported_file.hard_id IS 'Hard circuit; NULL where this is about a soft one.';
COMMENT ON COLUMN imported_file.tool IS 'Tool that the layout of the file is of: eap-ig, auto-circuit, acdc or transformer-lens.';
COMMENT ON COLUMN imported_file.dialect IS 'Which of the layouts of that tool.';
COMMENT ON COLUMN imported_file.file IS 'File, with its full path; of an object, what it is.';
COMMENT ON COLUMN imported_file.digest IS 'SHA-256 of the bytes of the file; of an object, of its scores.';
COMMENT ON COLUMN imported_file.part IS 'Which of several circuits of the file; NULL where it has one.';
COMMENT ON COLUMN imported_file.n_missing IS 'Edges of the graph that the file has nothing of.';
COMMENT ON COLUMN imported_file.imported_at IS 'When it was imported.';

CREATE VIEW hard_circuits AS
SELECT h.hard_id, h.circuit_id, m.name AS model, t.name AS task, s.name AS subtask, s.parameters, h.origin, h.method,
       h.share, h.n_edges, g.n_edges AS n_graph_edges, f.file, h.member_digest, h.graph_id, h.model_id, h.subtask_id
FROM imported_hard_circuit AS h
JOIN model AS m USING (model_id)
JOIN graph AS g ON g.graph_id = h.graph_id
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
LEFT JOIN imported_file AS f USING (hard_id);
COMMENT ON VIEW hard_circuits IS 'The imported hard circuits with their names, one row each.';
COMMENT ON COLUMN hard_circuits.hard_id IS 'Hard circuit.';
COMMENT ON COLUMN hard_circuits.circuit_id IS 'The soft circuit of the same file; NULL where the file has no scores.';
COMMENT ON COLUMN hard_circuits.model IS 'Name of the model.';
COMMENT ON COLUMN hard_circuits.task IS 'Name of the task.';
COMMENT ON COLUMN hard_circuits.subtask IS 'Name of the subtask.';
COMMENT ON COLUMN hard_circuits.parameters IS 'What fixes the subtask.';
COMMENT ON COLUMN hard_circuits.origin IS 'The tool whose file it was imported from.';
COMMENT ON COLUMN hard_circuits.method IS 'Method that found it; NULL where the file does not say.';
COMMENT ON COLUMN hard_circuits.share IS 'Share of the graph''s edges that it was cut for; NULL where the file does not say.';
COMMENT ON COLUMN hard_circuits.n_edges IS 'Edges in it.';
COMMENT ON COLUMN hard_circuits.n_graph_edges IS 'Edges of the graph.';
COMMENT ON COLUMN hard_circuits.file IS 'File it was imported from.';
COMMENT ON COLUMN hard_circuits.member_digest IS 'SHA-256 of its edge ids: equal digests are equal hard circuits of one graph.';
COMMENT ON COLUMN hard_circuits.graph_id IS 'Graph shape.';
COMMENT ON COLUMN hard_circuits.model_id IS 'Model.';
COMMENT ON COLUMN hard_circuits.subtask_id IS 'Subtask.';

CREATE MACRO hard_overlap(a, b) AS TABLE
SELECT count(y.edge_id) AS shared, count(*) AS n_a, (SELECT count(*) FROM hard_circuit_edge WHERE hard_id = b) AS n_b
FROM hard_circuit_edge AS x
LEFT JOIN hard_circuit_edge AS y ON y.edge_id = x.edge_id AND y.hard_id = b
JOIN imported_hard_circuit AS ha ON ha.hard_id = a
JOIN imported_hard_circuit AS hb ON hb.hard_id = b AND hb.graph_id = ha.graph_id
WHERE x.hard_id = a;
COMMENT ON MACRO TABLE hard_overlap IS 'How many edges two imported hard circuits of one graph share, beside the edges of each; 0 for all where their graphs differ.';

CREATE OR REPLACE VIEW shared_scores AS
SELECT circuit_id, source, 'a' || target_layer || '.kv' || kv_group || '<' || qkv || '>' AS target, qkv, target_layer, kv_group,
       sum(score) AS score
FROM scores
WHERE kv_group IS NOT NULL
GROUP BY ALL;
COMMENT ON VIEW shared_scores IS 'Scores of the shared key and value projections under grouped-query attention: the sum over the query heads of a group. Without the circuits of models whose number of key-value heads is not known.';
COMMENT ON COLUMN shared_scores.circuit_id IS 'Circuit.';
COMMENT ON COLUMN shared_scores.source IS 'Name of the source node.';
COMMENT ON COLUMN shared_scores.target IS 'Shared projection, for example a3.kv1<k>.';
COMMENT ON COLUMN shared_scores.qkv IS 'k or v.';
COMMENT ON COLUMN shared_scores.target_layer IS 'Layer of the target.';
COMMENT ON COLUMN shared_scores.kv_group IS 'Key-value head of the layer.';
COMMENT ON COLUMN shared_scores.score IS 'Sum of the scores over the query heads that share it.';

CREATE OR REPLACE MACRO stability(task := NULL, model := NULL) AS TABLE
WITH _asked AS (SELECT task AS _task, model AS _model),
_member AS (
    SELECT c.circuit_id, s.name AS subtask,
           dense_rank() OVER (ORDER BY c.model_id, s.task_id, c.origin, c.method, c.steps, c.grid, c.metric, c.positions,
                                       c.contrast, c.ablation, c.sign_convention, c.prompt_style, c.shots, c.shots_drawn,
                                       c.reasoning_tokens, c.chat, c.seed,
                                       c.n_examples + coalesce(c.n_skipped, 0), c.dtype, c.graph_id) AS number,
           m.name AS model, m.revision, t.name AS task, c.origin, c.method, c.metric, c.prompt_style, c.shots, c.seed, c.model_id
    FROM circuit AS c
    JOIN model AS m USING (model_id)
    JOIN subtask AS s USING (subtask_id)
    JOIN task AS t USING (task_id)
    CROSS JOIN _asked AS q
    WHERE (q._task IS NULL OR t.name = q._task) AND (q._model IS NULL OR m.name = q._model)
),
_pair AS (
    SELECT a.number, p.similarity
    FROM pair_similarities AS p
    JOIN _member AS a ON a.circuit_id = p.a_id
    JOIN _member AS b ON b.circuit_id = p.b_id
    WHERE a.number = b.number AND a.subtask <> b.subtask
),
_mean AS (SELECT number, avg(similarity) AS stability, count(similarity) AS n_pairs FROM _pair GROUP BY number)
SELECT m.model, m.task, m.origin, m.method, m.metric, m.prompt_style, m.shots, m.seed, m.model_id, count(DISTINCT m.subtask) AS n_subtasks,
       coalesce(any_value(x.n_pairs), 0) AS n_pairs, any_value(x.stability) AS stability
FROM _member AS m
LEFT JOIN _mean AS x USING (number)
GROUP BY m.number, m.model, m.task, m.origin, m.method, m.metric, m.prompt_style, m.shots, m.seed, m.model_id
ORDER BY m.number;
COMMENT ON MACRO TABLE stability IS 'Mean similarity of circuits of distinct subtasks, one row a model, task and way of scoring; of one task or model where named: stability(task := ''addition''). Without ceiling: `circuitdb stability` has that.';
