//! Plugins in the WebAssembly text format, for code that no SDK generates: start functions that
//! loop, tables that grow, invalid descriptions.

/// The template of a plugin; its placeholders are explained there.
const SHELL: &str = include_str!("../wat/plugin.wat");
/// The allocation function for values that the host passes in: a bump allocator without
/// deallocation, which suffices for one call.
const REALLOC: &str = r"(local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
        (then (if (i32.eq (memory.grow (i32.add (i32.div_u (local.get $size) (i32.const 65536)) (i32.const 1))) (i32.const -1))
          (then unreachable))))
      (local.get $at)";
/// The address of a custom answer.
const ANSWER: u32 = 256;
/// The start address of a plugin's data.
const BASE: u32 = 1024;

/// A plugin's unchecked description of a tool.
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
    /// The discriminant of the side-effect class: 0 for none, 1 for read, and so on.
    pub class: u8,
    /// The timeout, in milliseconds.
    pub timeout_ms: Option<u32>,
    /// The metadata.
    pub metadata: String,
}

impl Told {
    /// Creates a valid description.
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

    /// Sets the input schema.
    #[must_use]
    pub fn with_input(self, schema: impl Into<String>) -> Self {
        Self { input: schema.into(), ..self }
    }
}

/// A builder of plugins. The default answer to every call is the text `done`.
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
    siblings: Option<(String, String)>,
}

impl Wat {
    /// Creates a plugin with one tool.
    #[must_use]
    pub fn new(tool: Told) -> Self {
        Self::with_tools(vec![tool])
    }

    /// Creates a plugin with these tools.
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
            siblings: None,
        }
    }

    /// Returns the name of the first tool, or an empty string if there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tools.first().map_or("", |tool| tool.name.as_str())
    }

    /// Adds imports to the component, which it need not use.
    #[must_use]
    pub fn importing(mut self, imports: &str) -> Self {
        self.imports.push_str(imports);
        self
    }

    /// Adds imports to the core module.
    #[must_use]
    pub fn core_importing(mut self, imports: &str) -> Self {
        self.core_imports.push_str(imports);
        self
    }

    /// Adds arguments to the instantiation of the core module.
    #[must_use]
    pub fn with(mut self, instances: &str) -> Self {
        self.with.push_str(instances);
        self
    }

    /// Imports the host's monotonic clock into the core module, as `$now`. It returns the time in
    /// nanoseconds, and always 0 while a plugin is described.
    #[must_use]
    pub fn with_clock(self) -> Self {
        self.importing(
            r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
               (core func $now (canon lower (func $clock "now")))"#,
        )
        .core_importing(r#"(import "clock" "now" (func $now (result i64)))"#)
        .with(r#"(with "clock" (instance (export "now" (func $now))))"#)
    }

    /// Adds a start function that runs `code` only in calls: while a plugin is described, its clock
    /// reads 0.
    #[must_use]
    pub fn starting(self, code: &str) -> Self {
        let start = format!(
            "(func $start (if (i64.ne (call $now) (i64.const 0)) (then {code}))) (start $start)"
        );
        self.with_clock().extra(&start)
    }

    /// Replaces the code of the description, which leaves the address of a list on the stack.
    #[must_use]
    pub fn definitions(mut self, code: &str) -> Self {
        self.definitions = Some(code.to_owned());
        self
    }

    /// Replaces the code of every call, which leaves the address of a result on the stack.
    /// [`DONE`](Self::DONE) is replaced by the address of the default result.
    #[must_use]
    pub fn execute(mut self, code: &str) -> Self {
        self.execute = Some(code.to_owned());
        self
    }

    /// Replaces the code of the allocation function, which leaves an address on the stack.
    #[must_use]
    pub fn realloc(mut self, code: &str) -> Self {
        self.realloc = Some(code.to_owned());
        self
    }

    /// Answers every call with these words at these addresses, in the layout of a result in the
    /// canonical ABI, after the code `before`.
    #[must_use]
    pub fn answering(self, before: &str, words: &[(u32, u32)]) -> Self {
        let store =
            |(at, word): &(u32, u32)| format!("(i32.store (i32.const {at}) (i32.const {word}))");
        let stores: String = words.iter().map(store).collect();
        self.execute(&format!("{before} {stores} (i32.const {ANSWER})"))
    }

    /// Answers every call with one block, given its discriminant and the address and length of its
    /// text.
    #[must_use]
    pub fn answering_block(self, before: &str, case: u32, at: u32, length: u32) -> Self {
        // The result is `ok`; its content is the block's address and a length of 1, and `success`
        // is true.
        let answer = [(ANSWER + 4, ANSWER + 64), (ANSWER + 8, 1), (ANSWER + 12, 1)];
        let block = [(ANSWER + 64, case), (ANSWER + 68, at), (ANSWER + 72, length)];
        self.answering(before, &[&answer[..], &block].concat())
    }

    /// Adds fields to the core module.
    #[must_use]
    pub fn extra(mut self, fields: &str) -> Self {
        self.extra.push_str(fields);
        self
    }

    /// Sets the name under which the tools are exported.
    #[must_use]
    pub fn exporting(mut self, name: &str) -> Self {
        self.export = name.to_owned();
        self
    }

    /// Makes the plugin one of several components, beside `siblings`, from which it is instantiated
    /// with these arguments.
    #[must_use]
    pub fn composed(mut self, siblings: &str, arguments: &str) -> Self {
        self.siblings = Some((siblings.to_owned(), arguments.to_owned()));
        self
    }

    /// The placeholder for the address of the default result.
    pub const DONE: &str = "{done}";

    /// Builds the component.
    ///
    /// # Panics
    ///
    /// If the text is invalid.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut image = Image::default();
        let done = image.done();
        let list = image.definitions(&self.tools);
        let heap = BASE + image.length();
        let constant = |address: u32| format!("(i32.const {address})");
        let execute = self
            .execute
            .clone()
            .unwrap_or_else(|| Self::DONE.to_owned())
            .replace(Self::DONE, &constant(done));
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
        match &self.siblings {
            Some((siblings, arguments)) => {
                binary(&composition(&text, siblings, arguments, &self.export))
            }
            None => binary(&text),
        }
    }
}

/// Returns a component that contains `plugin` and `siblings`, and exports what `plugin` does.
fn composition(plugin: &str, siblings: &str, arguments: &str, export: &str) -> String {
    let (_, inner) = plugin.split_once("(component").expect("a component");
    let import = inner.split("(alias export $types").next().expect("the import of the types");
    format!(
        r#"(component {import} {siblings} (component $plugin {inner}
          (instance $plugin (instantiate $plugin
            (with "palisade:tool/types@0.1.0" (instance $types)) {arguments}))
          (export "{export}" (instance $plugin "{export}")))"#
    )
}

/// Converts WebAssembly text to its binary form.
///
/// # Panics
///
/// If the text is invalid.
#[must_use]
pub fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("the text is not valid: {error}"))
}

/// The data of a plugin, in the layout of the canonical ABI.
#[derive(Default)]
struct Image(Vec<u8>);

impl Image {
    fn length(&self) -> u32 {
        u32::try_from(self.0.len()).expect("a plugin of a test is small")
    }

    /// Appends bytes at an aligned address, and returns that address.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        let padding = self.0.len().next_multiple_of(8) - self.0.len();
        self.0.extend(std::iter::repeat_n(0, padding));
        let at = BASE + self.length();
        self.0.extend_from_slice(bytes);
        at
    }

    /// Appends a text, and returns its address and length.
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

    /// Appends a successful result with the text `done`, and returns its address.
    fn done(&mut self) -> u32 {
        let [at, length] = self.text("done");
        // A block with the discriminant of `text`, its payload, and padding to the size of the
        // largest case.
        let block = self.words(&[0, at, length, 0, 0, 0, 0, 0, 0]);
        // The discriminant of `ok`, then content, success, metadata, files-modified and
        // command-executed.
        self.words(&[0, block, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    }

    fn definitions(&mut self, tools: &[Told]) -> u32 {
        let records: Vec<u32> = tools.iter().flat_map(|tool| self.definition(tool)).collect();
        let count = u32::try_from(tools.len()).expect("a plugin of a test is small");
        let at = self.words(&records);
        self.words(&[at, count])
    }

    /// Returns the record of a tool: 17 words.
    fn definition(&mut self, tool: &Told) -> Vec<u32> {
        let mut words = Vec::with_capacity(17);
        words.extend(self.text(&tool.name));
        words.extend(self.optional(tool.title.as_ref()));
        words.extend(self.text(&tool.description));
        words.extend(self.text(&tool.input));
        words.extend(self.optional(tool.output.as_ref()));
        // The class and `idempotent` are bytes of one word.
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
