//! Plugins in WebAssembly text, for what no SDK would write: start functions that loop, tables that grow, descriptions that break every rule.

/// The shell that a plugin is built into; see there for its places.
const SHELL: &str = include_str!("../wat/plugin.wat");
/// What gives memory to the host, for what it passes in: memory that is never given back, since a call is too short for more.
const REALLOC: &str = r"(local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
        (then (if (i32.eq (memory.grow (i32.add (i32.div_u (local.get $size) (i32.const 65536)) (i32.const 1))) (i32.const -1))
          (then unreachable))))
      (local.get $at)";
/// Where an answer of its own lies.
const ANSWER: u32 = 256;
/// Where the data of a plugin starts in its memory.
const BASE: u32 = 1024;

/// What a plugin says of a tool, unchecked.
#[derive(Debug, Clone)]
pub struct Told {
    /// The name.
    pub name: String,
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The input schema.
    pub input: String,
    /// The output schema.
    pub output: Option<String>,
    /// The number of the class: 0 for none, 1 for read, and so on.
    pub class: u8,
    /// The timeout, in milliseconds.
    pub timeout_ms: Option<u32>,
    /// The metadata.
    pub metadata: String,
}

impl Told {
    /// A tool without fault.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: None,
            description: "A tool.".to_owned(),
            input: r#"{"type": "object"}"#.to_owned(),
            output: None,
            class: 0,
            timeout_ms: None,
            metadata: String::new(),
        }
    }

    /// With this schema of its input.
    #[must_use]
    pub fn with_input(self, schema: impl Into<String>) -> Self {
        Self { input: schema.into(), ..self }
    }
}

/// A plugin in the making. It answers every call with the text `done` unless a test says otherwise.
#[derive(Debug, Clone)]
pub struct Wat {
    tools: Vec<Told>,
    imports: String,
    core_imports: String,
    with: String,
    definitions: Option<String>,
    execute: Option<String>,
    realloc: Option<String>,
    extra: String,
    export: String,
}

impl Wat {
    /// A plugin with this one tool.
    #[must_use]
    pub fn new(tool: Told) -> Self {
        Self::with_tools(vec![tool])
    }

    /// A plugin with these tools.
    #[must_use]
    pub fn with_tools(tools: Vec<Told>) -> Self {
        Self {
            tools,
            imports: String::new(),
            core_imports: String::new(),
            with: String::new(),
            definitions: None,
            execute: None,
            realloc: None,
            extra: String::new(),
            export: "palisade:tool/tool@0.1.0".to_owned(),
        }
    }

    /// The name of its first tool; empty where it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tools.first().map_or("", |tool| tool.name.as_str())
    }

    /// With imports of the component, which it need not use.
    #[must_use]
    pub fn importing(mut self, imports: &str) -> Self {
        self.imports.push_str(imports);
        self
    }

    /// With imports of the core module.
    #[must_use]
    pub fn core_importing(mut self, imports: &str) -> Self {
        self.core_imports.push_str(imports);
        self
    }

    /// With what the core module is instantiated with.
    #[must_use]
    pub fn with(mut self, instances: &str) -> Self {
        self.with.push_str(instances);
        self
    }

    /// With one function of the host in the core module, as `$now`: the time in nanoseconds, which stands still at 0 while a plugin is described.
    #[must_use]
    pub fn with_clock(self) -> Self {
        self.importing(
            r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
               (core func $now (canon lower (func $clock "now")))"#,
        )
        .core_importing(r#"(import "clock" "now" (func $now (result i64)))"#)
        .with(r#"(with "clock" (instance (export "now" (func $now))))"#)
    }

    /// With this code in place of the description; it leaves the address of a list.
    #[must_use]
    pub fn definitions(mut self, code: &str) -> Self {
        self.definitions = Some(code.to_owned());
        self
    }

    /// With this code for every call; it leaves the address of a result, of which [`DONE`](Self::DONE) stands for the usual one.
    #[must_use]
    pub fn execute(mut self, code: &str) -> Self {
        self.execute = Some(code.to_owned());
        self
    }

    /// With this code in place of what gives memory to the host; it leaves an address.
    #[must_use]
    pub fn realloc(mut self, code: &str) -> Self {
        self.realloc = Some(code.to_owned());
        self
    }

    /// With an answer of its own: these words, as the canonical ABI lays out a result, of which the addresses are the test's matter.
    #[must_use]
    pub fn answering(self, before: &str, words: &[(u32, u32)]) -> Self {
        let store = |(at, word): &(u32, u32)| format!("(i32.store (i32.const {at}) (i32.const {word}))");
        let stores: String = words.iter().map(store).collect();
        self.execute(&format!("{before} {stores} (i32.const {ANSWER})"))
    }

    /// With an answer of one block: its case, and where in memory its text lies.
    #[must_use]
    pub fn answering_block(self, before: &str, case: u32, at: u32, length: u32) -> Self {
        // The case `ok`; then the block's address, one of it, and success.
        let answer = [(ANSWER + 4, ANSWER + 64), (ANSWER + 8, 1), (ANSWER + 12, 1)];
        let block = [(ANSWER + 64, case), (ANSWER + 68, at), (ANSWER + 72, length)];
        self.answering(before, &[&answer[..], &block].concat())
    }

    /// With more in the core module.
    #[must_use]
    pub fn extra(mut self, fields: &str) -> Self {
        self.extra.push_str(fields);
        self
    }

    /// With its tools exported under this name.
    #[must_use]
    pub fn exporting(mut self, name: &str) -> Self {
        self.export = name.to_owned();
        self
    }

    /// Stands for the address of the usual result in code.
    pub const DONE: &str = "{done}";

    /// The component.
    ///
    /// # Panics
    ///
    /// Where the text is not valid.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut image = Image::default();
        let done = image.done();
        let list = image.definitions(&self.tools);
        let heap = BASE + image.length();
        let constant = |address: u32| format!("(i32.const {address})");
        let execute =
            self.execute.clone().unwrap_or_else(|| Self::DONE.to_owned()).replace(Self::DONE, &constant(done));
        let text = SHELL
            .replace("{imports}", &self.imports)
            .replace("{core-imports}", &self.core_imports)
            .replace("{pages}", &(heap / 65_536 + 2).to_string())
            .replace("{heap}", &heap.to_string())
            .replace("{base}", &BASE.to_string())
            .replace("{definitions}", &self.definitions.clone().unwrap_or_else(|| constant(list)))
            .replace("{execute}", &execute)
            .replace("{realloc}", self.realloc.as_deref().unwrap_or(REALLOC))
            .replace("{extra}", &self.extra)
            .replace("{with}", &self.with)
            .replace("{export}", &self.export)
            .replace("{image}", &image.escaped());
        binary(&text)
    }
}

/// Turns text into its binary form.
///
/// # Panics
///
/// Where the text is not valid.
#[must_use]
pub fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("the text is not valid: {error}"))
}

/// The data of a plugin, laid out as the canonical ABI wants it.
#[derive(Default)]
struct Image(Vec<u8>);

impl Image {
    fn length(&self) -> u32 {
        u32::try_from(self.0.len()).expect("a plugin of a test is small")
    }

    /// Adds bytes and gives their address.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        let padding = self.0.len().next_multiple_of(8) - self.0.len();
        self.0.extend(std::iter::repeat_n(0, padding));
        let at = BASE + self.length();
        self.0.extend_from_slice(bytes);
        at
    }

    /// Address and length of a text.
    fn text(&mut self, text: &str) -> [u32; 2] {
        let length = u32::try_from(text.len()).expect("a text of a test is small");
        [self.put(text.as_bytes()), length]
    }

    fn optional(&mut self, text: Option<&String>) -> [u32; 3] {
        match text {
            Some(text) => {
                let [at, length] = self.text(text);
                [1, at, length]
            }
            None => [0; 3],
        }
    }

    /// A successful result with the text `done`.
    fn done(&mut self) -> u32 {
        let [at, length] = self.text("done");
        // One block: the case `text`, its payload, and the room that the largest case takes.
        let block = self.words(&[0, at, length, 0, 0, 0, 0, 0, 0]);
        // The case `ok`; then content, success, metadata, files-modified and command-executed.
        self.words(&[0, block, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    }

    fn definitions(&mut self, tools: &[Told]) -> u32 {
        let records: Vec<u32> = tools.iter().flat_map(|tool| self.definition(tool)).collect();
        let count = u32::try_from(tools.len()).expect("a plugin of a test is small");
        let at = self.words(&records);
        self.words(&[at, count])
    }

    /// The record of one tool: 17 words.
    fn definition(&mut self, tool: &Told) -> Vec<u32> {
        let mut words = Vec::with_capacity(17);
        words.extend(self.text(&tool.name));
        words.extend(self.optional(tool.title.as_ref()));
        words.extend(self.text(&tool.description));
        words.extend(self.text(&tool.input));
        words.extend(self.optional(tool.output.as_ref()));
        // Two bytes share a word: the class, and whether the tool is idempotent.
        words.push(tool.class.into());
        words.extend([u32::from(tool.timeout_ms.is_some()), tool.timeout_ms.unwrap_or(0)]);
        words.extend(self.text(&tool.metadata));
        words
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    fn escaped(&self) -> String {
        self.0.iter().map(|byte| format!("\\{byte:02x}")).collect()
    }
}
