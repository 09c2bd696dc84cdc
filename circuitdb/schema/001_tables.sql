-- The tables of a circuitdb file. Ids are small integers given by the writer: DuckDB lets one process write at a time.
-- The two fact tables carry no key and no index: their rows are written in (circuit_id, edge_id) order, and zone maps
-- find a circuit; a primary key would make writing ten times slower and the file three times larger.

CREATE TABLE schema_version (
    version INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON TABLE schema_version IS 'The migrations that made this file, one row each.';
COMMENT ON COLUMN schema_version.version IS 'Number of the migration; the largest is the version of the file.';
COMMENT ON COLUMN schema_version.name IS 'File name of the migration.';
COMMENT ON COLUMN schema_version.applied_at IS 'When it was applied.';

CREATE TABLE graph (
    graph_id INTEGER PRIMARY KEY,
    n_layers INTEGER NOT NULL,
    n_heads INTEGER NOT NULL,
    parallel BOOLEAN NOT NULL,
    n_nodes INTEGER NOT NULL,
    n_edges INTEGER NOT NULL
);
COMMENT ON TABLE graph IS 'One graph shape, shared by all models of that shape, so that their circuits line up edge by edge.';
COMMENT ON COLUMN graph.graph_id IS 'Key.';
COMMENT ON COLUMN graph.n_layers IS 'Layers.';
COMMENT ON COLUMN graph.n_heads IS 'Query heads of a layer.';
COMMENT ON COLUMN graph.parallel IS 'True where attention and MLP of a layer read the same stream (GPT-NeoX, GPT-J, Phi).';
COMMENT ON COLUMN graph.n_nodes IS 'Nodes: input, heads, MLPs, logits.';
COMMENT ON COLUMN graph.n_edges IS 'Edges.';

CREATE TABLE node (
    graph_id INTEGER NOT NULL,
    node_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    layer INTEGER,
    head INTEGER
);
COMMENT ON TABLE node IS 'The nodes of a graph shape.';
COMMENT ON COLUMN node.graph_id IS 'Graph.';
COMMENT ON COLUMN node.node_id IS 'Number within the graph, in the order of the forward pass.';
COMMENT ON COLUMN node.name IS 'input, a{layer}.h{head}, m{layer} or logits.';
COMMENT ON COLUMN node.kind IS 'input, head, mlp or logits.';
COMMENT ON COLUMN node.layer IS 'Layer; NULL for input and logits.';
COMMENT ON COLUMN node.head IS 'Query head; NULL where the node is no head.';

CREATE TABLE edge (
    graph_id INTEGER NOT NULL,
    edge_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    source_kind VARCHAR NOT NULL,
    source_layer INTEGER,
    source_head INTEGER,
    target_kind VARCHAR NOT NULL,
    target_layer INTEGER,
    target_head INTEGER,
    qkv VARCHAR
);
COMMENT ON TABLE edge IS 'The edges of a graph shape: source writes to the residual stream, target reads from it.';
COMMENT ON COLUMN edge.graph_id IS 'Graph.';
COMMENT ON COLUMN edge.edge_id IS 'Number within the graph: source by source, then target by target. The same for all models of the shape.';
COMMENT ON COLUMN edge.name IS 'source->target, for example a0.h1->m1 or input->a3.h2<q>.';
COMMENT ON COLUMN edge.source IS 'Name of the source node.';
COMMENT ON COLUMN edge.target IS 'Name of the target with its branch, for example a3.h2<q>.';
COMMENT ON COLUMN edge.source_id IS 'node_id of the source.';
COMMENT ON COLUMN edge.target_id IS 'node_id of the target node.';
COMMENT ON COLUMN edge.source_kind IS 'input, head or mlp.';
COMMENT ON COLUMN edge.source_layer IS 'Layer of the source; NULL for input.';
COMMENT ON COLUMN edge.source_head IS 'Head of the source; NULL where it is no head.';
COMMENT ON COLUMN edge.target_kind IS 'head, mlp or logits.';
COMMENT ON COLUMN edge.target_layer IS 'Layer of the target; NULL for logits.';
COMMENT ON COLUMN edge.target_head IS 'Query head of the target; NULL where it is no head.';
COMMENT ON COLUMN edge.qkv IS 'q, k or v: which input of the head; NULL where the target is no head.';

CREATE TABLE model (
    model_id INTEGER PRIMARY KEY,
    graph_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    revision VARCHAR,
    architecture VARCHAR NOT NULL,
    n_layers INTEGER NOT NULL,
    n_heads INTEGER NOT NULL,
    n_kv_heads INTEGER NOT NULL,
    d_model INTEGER NOT NULL,
    parallel BOOLEAN NOT NULL,
    n_parameters BIGINT,
    weights_digest VARCHAR
);
COMMENT ON TABLE model IS 'A model, or one checkpoint of it. Other weights under the same name are another row.';
COMMENT ON COLUMN model.model_id IS 'Key.';
COMMENT ON COLUMN model.graph_id IS 'Its graph shape.';
COMMENT ON COLUMN model.name IS 'Name given by the user, else that of the hub or folder.';
COMMENT ON COLUMN model.revision IS 'Hub revision or training step; NULL where none was named.';
COMMENT ON COLUMN model.architecture IS 'Class of the Hugging Face model.';
COMMENT ON COLUMN model.n_layers IS 'Layers.';
COMMENT ON COLUMN model.n_heads IS 'Query heads of a layer.';
COMMENT ON COLUMN model.n_kv_heads IS 'Key-value heads of a layer; fewer than n_heads under grouped-query attention.';
COMMENT ON COLUMN model.d_model IS 'Width of the residual stream.';
COMMENT ON COLUMN model.parallel IS 'Parallel attention and MLP.';
COMMENT ON COLUMN model.n_parameters IS 'Number of parameters; NULL for imported circuits.';
COMMENT ON COLUMN model.weights_digest IS 'SHA-256 of configuration and weights as loaded, so of their type too; NULL for imported circuits.';

CREATE TABLE task (
    task_id INTEGER PRIMARY KEY,
    name VARCHAR NOT NULL,
    description VARCHAR
);
COMMENT ON TABLE task IS 'A task: a distribution over questions and answers.';
COMMENT ON COLUMN task.task_id IS 'Key.';
COMMENT ON COLUMN task.name IS 'Name, for example addition.';
COMMENT ON COLUMN task.description IS 'What the task is, in a sentence.';

CREATE TABLE subtask (
    subtask_id INTEGER PRIMARY KEY,
    task_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    parameters JSON NOT NULL
);
COMMENT ON TABLE subtask IS 'A cell of a partition of a task.';
COMMENT ON COLUMN subtask.subtask_id IS 'Key.';
COMMENT ON COLUMN subtask.task_id IS 'Its task.';
COMMENT ON COLUMN subtask.name IS 'Name within the task, for example 2+3.';
COMMENT ON COLUMN subtask.parameters IS 'What fixes the cell, for example {"digits_a": 2, "digits_b": 3}; subtask_parameters has one row each.';

CREATE TABLE circuit (
    circuit_id INTEGER PRIMARY KEY,
    model_id INTEGER NOT NULL,
    subtask_id INTEGER NOT NULL,
    graph_id INTEGER NOT NULL,
    origin VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    steps INTEGER,
    grid VARCHAR,
    metric VARCHAR NOT NULL,
    positions VARCHAR NOT NULL,
    ablation VARCHAR NOT NULL,
    sign_convention VARCHAR NOT NULL,
    prompt_style VARCHAR,
    shots INTEGER,
    seed BIGINT,
    n_examples INTEGER,
    n_skipped INTEGER,
    n_folds INTEGER NOT NULL,
    metric_clean DOUBLE,
    metric_corrupted DOUBLE,
    bos BOOLEAN,
    padding VARCHAR,
    dtype VARCHAR,
    device VARCHAR,
    batch_size INTEGER,
    software JSON,
    started_at TIMESTAMPTZ,
    wall_time_s DOUBLE,
    n_edges INTEGER NOT NULL,
    n_nonfinite INTEGER NOT NULL,
    score_digest VARCHAR NOT NULL,
    spec_digest VARCHAR NOT NULL,
    spec JSON NOT NULL
);
COMMENT ON TABLE circuit IS 'A soft circuit: one run of one method on one model and subtask, with all that is needed to run it again.';
COMMENT ON COLUMN circuit.circuit_id IS 'Key.';
COMMENT ON COLUMN circuit.model_id IS 'Model.';
COMMENT ON COLUMN circuit.subtask_id IS 'Subtask.';
COMMENT ON COLUMN circuit.graph_id IS 'Graph shape; its edges are the rows of edge_score.';
COMMENT ON COLUMN circuit.origin IS 'ingest, or the file format it was imported from.';
COMMENT ON COLUMN circuit.method IS 'Attribution method, for example eap-ig.';
COMMENT ON COLUMN circuit.steps IS 'Integration steps; NULL where the method has none.';
COMMENT ON COLUMN circuit.grid IS 'Integration grid: right is k/m for k = 1..m, left is k = 0..m-1.';
COMMENT ON COLUMN circuit.metric IS 'Metric that was attributed: kl (from clean to run, in nats) or logit-difference.';
COMMENT ON COLUMN circuit.positions IS 'Scored positions: last.';
COMMENT ON COLUMN circuit.ablation IS 'What an edge is replaced by: patching (the corrupted run).';
COMMENT ON COLUMN circuit.sign_convention IS 'ablated-minus-clean: a positive score means that ablating the edge raises the metric.';
COMMENT ON COLUMN circuit.prompt_style IS 'zero-shot or few-shot.';
COMMENT ON COLUMN circuit.shots IS 'Solved questions before the scored one.';
COMMENT ON COLUMN circuit.seed IS 'Seed of the examples.';
COMMENT ON COLUMN circuit.n_examples IS 'Pairs that were scored.';
COMMENT ON COLUMN circuit.n_skipped IS 'Questions left out; the reason is in example.';
COMMENT ON COLUMN circuit.n_folds IS 'Parts of the examples, with no question in common, whose scores are kept apart in fold_score.';
COMMENT ON COLUMN circuit.metric_clean IS 'Mean metric of the clean runs.';
COMMENT ON COLUMN circuit.metric_corrupted IS 'Mean metric of the corrupted runs.';
COMMENT ON COLUMN circuit.bos IS 'Whether the prompts begin with the tokenizer''s BOS token.';
COMMENT ON COLUMN circuit.padding IS 'Padding side; none where batches hold prompts of one length.';
COMMENT ON COLUMN circuit.dtype IS 'Type the model computed in.';
COMMENT ON COLUMN circuit.device IS 'Device the model computed on.';
COMMENT ON COLUMN circuit.batch_size IS 'Pairs in a batch; scores do not depend on it beyond rounding.';
COMMENT ON COLUMN circuit.software IS 'Versions of circuitdb, torch, transformer_lens, transformers and Python.';
COMMENT ON COLUMN circuit.started_at IS 'When scoring began.';
COMMENT ON COLUMN circuit.wall_time_s IS 'Seconds that scoring took; reading the answers for the accuracy is not in it.';
COMMENT ON COLUMN circuit.n_edges IS 'Rows in edge_score.';
COMMENT ON COLUMN circuit.n_nonfinite IS 'Scores that were not finite and are stored as NULL.';
COMMENT ON COLUMN circuit.score_digest IS 'SHA-256 of the scores (float32, little endian, edge order): equal digests are equal circuits.';
COMMENT ON COLUMN circuit.spec_digest IS 'SHA-256 of spec: the key by which an ingest resumes.';
COMMENT ON COLUMN circuit.spec IS 'Everything that decides the scores: digests of the weights and of the token ids, method and its options.';

CREATE TABLE example (
    circuit_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    fold INTEGER,
    clean VARCHAR,
    corrupted VARCHAR,
    answer VARCHAR,
    corrupted_answer VARCHAR,
    n_tokens INTEGER,
    used BOOLEAN NOT NULL,
    reason VARCHAR,
    prediction VARCHAR,
    correct BOOLEAN
);
COMMENT ON TABLE example IS 'The questions of a circuit: those that were scored, and those that were skipped with the reason.';
COMMENT ON COLUMN example.circuit_id IS 'Circuit.';
COMMENT ON COLUMN example.position IS 'Place in the order of the examples.';
COMMENT ON COLUMN example.fold IS 'Fold it was scored in; NULL if skipped.';
COMMENT ON COLUMN example.clean IS 'Clean prompt.';
COMMENT ON COLUMN example.corrupted IS 'Corrupted prompt, of equal token length; NULL if none was found.';
COMMENT ON COLUMN example.answer IS 'Right answer to the clean prompt.';
COMMENT ON COLUMN example.corrupted_answer IS 'Right answer to the corrupted prompt.';
COMMENT ON COLUMN example.n_tokens IS 'Tokens of the clean prompt.';
COMMENT ON COLUMN example.used IS 'Whether it was scored.';
COMMENT ON COLUMN example.reason IS 'Why it was skipped; NULL if it was not.';
COMMENT ON COLUMN example.prediction IS 'What the model answered, decoded greedily; NULL if it was not asked.';
COMMENT ON COLUMN example.correct IS 'Whether that is the answer.';

CREATE TABLE edge_score (
    circuit_id INTEGER NOT NULL,
    edge_id INTEGER NOT NULL,
    score FLOAT
);
COMMENT ON TABLE edge_score IS 'The fact table: every edge of every circuit, zeros included, in (circuit_id, edge_id) order.';
COMMENT ON COLUMN edge_score.circuit_id IS 'Circuit.';
COMMENT ON COLUMN edge_score.edge_id IS 'Edge of the circuit''s graph.';
COMMENT ON COLUMN edge_score.score IS 'Change of the mean metric when the edge is ablated (estimated to first order); NULL where it was not finite.';

CREATE TABLE fold_score (
    circuit_id INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    edge_id INTEGER NOT NULL,
    score FLOAT
);
COMMENT ON TABLE fold_score IS 'The same scores over each fold of the examples alone, in (circuit_id, fold, edge_id) order: what reliability is computed from.';
COMMENT ON COLUMN fold_score.circuit_id IS 'Circuit.';
COMMENT ON COLUMN fold_score.fold IS 'Fold, from 0.';
COMMENT ON COLUMN fold_score.edge_id IS 'Edge of the circuit''s graph.';
COMMENT ON COLUMN fold_score.score IS 'Change of the mean metric over the fold''s examples; NULL where it was not finite.';

CREATE TABLE evaluation (
    model_id INTEGER,
    subtask_id INTEGER,
    circuit_id INTEGER,
    metric VARCHAR NOT NULL,
    filter VARCHAR,
    value DOUBLE,
    stderr DOUBLE,
    n INTEGER,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE evaluation IS 'How well a model does on a subtask: our own accuracies and imported results.';
COMMENT ON COLUMN evaluation.model_id IS 'Model; NULL where an imported name matches none.';
COMMENT ON COLUMN evaluation.subtask_id IS 'Subtask; NULL where the result is of a whole task, or an imported name matches none.';
COMMENT ON COLUMN evaluation.circuit_id IS 'The circuit whose examples were used; NULL for imported results.';
COMMENT ON COLUMN evaluation.metric IS 'What was measured, for example accuracy.';
COMMENT ON COLUMN evaluation.filter IS 'How the answer was read, for example greedy.';
COMMENT ON COLUMN evaluation.value IS 'Value; accuracies are shares from 0 to 1.';
COMMENT ON COLUMN evaluation.stderr IS 'Standard error of the value.';
COMMENT ON COLUMN evaluation.n IS 'Number of questions.';
COMMENT ON COLUMN evaluation.source IS 'circuitdb, or the file it came from.';

CREATE TABLE faithfulness (
    circuit_id INTEGER NOT NULL,
    data_circuit_id INTEGER NOT NULL,
    n_edges INTEGER NOT NULL,
    selection VARCHAR NOT NULL,
    ablation VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    value DOUBLE,
    clean DOUBLE,
    corrupted DOUBLE,
    faithfulness DOUBLE,
    reason VARCHAR
);
COMMENT ON TABLE faithfulness IS 'A circuit cut to its strongest edges and run in the model, on its own examples or on another circuit''s.';
COMMENT ON COLUMN faithfulness.circuit_id IS 'Circuit that was cut.';
COMMENT ON COLUMN faithfulness.data_circuit_id IS 'Circuit whose examples it was run on.';
COMMENT ON COLUMN faithfulness.n_edges IS 'Edges kept.';
COMMENT ON COLUMN faithfulness.selection IS 'How they were chosen, for example top-absolute.';
COMMENT ON COLUMN faithfulness.ablation IS 'What the other edges were replaced by.';
COMMENT ON COLUMN faithfulness.metric IS 'Metric.';
COMMENT ON COLUMN faithfulness.value IS 'Mean metric of the cut circuit.';
COMMENT ON COLUMN faithfulness.clean IS 'Mean metric of the whole model.';
COMMENT ON COLUMN faithfulness.corrupted IS 'Mean metric with every edge ablated.';
COMMENT ON COLUMN faithfulness.faithfulness IS '(value - corrupted) / (clean - corrupted); NULL where the gap is 0.';
COMMENT ON COLUMN faithfulness.reason IS 'Why faithfulness is NULL.';

CREATE TABLE note (
    circuit_id INTEGER,
    node VARCHAR,
    edge VARCHAR,
    text VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON TABLE note IS 'The user''s own words on a circuit, a node or an edge.';
COMMENT ON COLUMN note.circuit_id IS 'Circuit; NULL where the note is about a node or edge in general.';
COMMENT ON COLUMN note.node IS 'Node name, or NULL.';
COMMENT ON COLUMN note.edge IS 'Edge name, or NULL.';
COMMENT ON COLUMN note.text IS 'The words.';
COMMENT ON COLUMN note.created_at IS 'When they were written.';
