;; The two tools of the comparison as an ACT component, written by hand, so that the cost of an SDK
;; is not attributed to ACT. `echo` returns a text, and `checksum` the 32-bit FNV-1a of its bytes in
;; hexadecimal. The memory of a call is released after it.
(component
  (import "act:core/types@0.4.0" (instance $core
    (type $localized-string' (variant (case "plain" string) (case "localized" (list (tuple string string)))))
    (export "localized-string" (type $localized-string (eq $localized-string')))
    (type $cbor' (list u8))
    (export "cbor" (type $cbor (eq $cbor')))
    (type $metadata' (list (tuple string $cbor)))
    (export "metadata" (type $metadata (eq $metadata')))
    (type $error' (record (field "kind" string) (field "message" $localized-string) (field "metadata" $metadata)))
    (export "error" (type $error (eq $error')))
  ))
  (alias export $core "localized-string" (type $localized-string))
  (alias export $core "cbor" (type $cbor))
  (alias export $core "metadata" (type $metadata))
  (alias export $core "error" (type $error))
  (import "act:tools/types@0.2.0" (instance $types
    (alias outer 1 $localized-string (type $outer-string))
    (alias outer 1 $metadata (type $outer-metadata))
    (alias outer 1 $error (type $outer-error))
    (export "localized-string" (type $localized-string (eq $outer-string)))
    (export "metadata" (type $metadata (eq $outer-metadata)))
    (export "error" (type $error (eq $outer-error)))
    (type $tool-definition' (record
      (field "name" string)
      (field "description" $localized-string)
      (field "parameters-schema" string)
      (field "metadata" $metadata)))
    (export "tool-definition" (type $tool-definition (eq $tool-definition')))
    (type $content-part' (record
      (field "data" (list u8)) (field "mime-type" (option string)) (field "metadata" $metadata)))
    (export "content-part" (type $content-part (eq $content-part')))
    (type $tool-event' (variant (case "content" $content-part) (case "error" $error)))
    (export "tool-event" (type $tool-event (eq $tool-event')))
    (type $list-tools-response' (record (field "metadata" $metadata) (field "tools" (list $tool-definition))))
    (export "list-tools-response" (type $list-tools-response (eq $list-tools-response')))
  ))
  (alias export $types "tool-event" (type $tool-event))
  (alias export $types "list-tools-response" (type $list-tools-response))
  (type $events (stream $tool-event))
  (type $tool-result' (variant (case "immediate" (list $tool-event)) (case "streaming" $events)))
  (export $tool-result "tool-result" (type $tool-result'))

  (core module $main
    (memory (export "memory") 2)
    (global $next (mut i32) (i32.const 65536))

    ;; The result of `list-tools`: no error, no metadata, and two definitions.
    (data (i32.const 16) "\00\00\00\00" "\00\00\00\00\00\00\00\00" "\40\00\00\00\02\00\00\00")
    ;; The definitions: name, description (plain), schema, no metadata; each an address and a
    ;; length.
    (data (i32.const 64)
      "\00\01\00\00\04\00\00\00" "\00\00\00\00\20\01\00\00\11\00\00\00" "\80\01\00\00\4d\00\00\00" "\00\00\00\00\00\00\00\00"
      "\10\01\00\00\08\00\00\00" "\00\00\00\00\40\01\00\00\1a\00\00\00" "\80\01\00\00\4d\00\00\00" "\00\00\00\00\00\00\00\00")
    ;; The result of `call-tool`: immediate, with one event. The event is a content part with a
    ;; media type and without metadata; a call sets its address and length.
    (data (i32.const 160) "\00\00\00\00" "\b0\00\00\00\01\00\00\00")
    (data (i32.const 176)
      "\00\00\00\00" "\00\00\00\00\00\00\00\00" "\01\00\00\00\60\01\00\00\0a\00\00\00" "\00\00\00\00\00\00\00\00")
    (data (i32.const 256) "echo")
    (data (i32.const 272) "checksum")
    (data (i32.const 288) "Returns the text.")
    (data (i32.const 320) "Checksum of the text bytes")
    (data (i32.const 352) "text/plain")
    (data (i32.const 384) "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}")
    (data (i32.const 512) "0123456789abcdef")

    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
        (then (if (i32.eq (memory.grow (i32.add (i32.div_u (local.get $size) (i32.const 65536)) (i32.const 1))) (i32.const -1))
          (then unreachable))))
      (local.get $at))
    (func (export "forget") (param i32)
      (global.set $next (i32.const 65536)))

    (func (export "list") (param i32 i32) (result i32)
      (i32.const 16))

    ;; The arguments are a CBOR map of one entry: its head, the key `text` with its head, and the
    ;; text, whose head has a variable length.
    (func (export "call") (param $name i32) (param $name-length i32) (param $cbor i32) (param $length i32) (param i32 i32) (result i32)
      (local $head i32) (local $text i32)
      (if (i64.ne (i64.and (i64.load (local.get $cbor)) (i64.const 0xffffffffffff)) (i64.const 0x7478657464a1))
        (then unreachable))
      (local.set $head (i32.and (i32.load8_u offset=6 (local.get $cbor)) (i32.const 31)))
      (local.set $head (i32.add (i32.const 7) (select
        (i32.const 0)
        (i32.shl (i32.const 1) (i32.sub (local.get $head) (i32.const 24)))
        (i32.lt_u (local.get $head) (i32.const 24)))))
      (local.set $text (i32.add (local.get $cbor) (local.get $head)))
      (local.set $length (i32.sub (local.get $length) (local.get $head)))
      ;; The tools are distinguished by the lengths of their names.
      (if (i32.eq (local.get $name-length) (i32.const 4))
        (then
          (i32.store (i32.const 180) (local.get $text))
          (i32.store (i32.const 184) (local.get $length)))
        (else
          (call $write-hexadecimal (call $fnv (local.get $text) (local.get $length)))
          (i32.store (i32.const 180) (i32.const 544))
          (i32.store (i32.const 184) (i32.const 8))))
      (i32.const 160))

    (func $fnv (param $at i32) (param $length i32) (result i32)
      (local $end i32) (local $hash i32)
      (local.set $end (i32.add (local.get $at) (local.get $length)))
      (local.set $hash (i32.const 0x811c9dc5))
      (block $done
        (loop $next
          (br_if $done (i32.eq (local.get $at) (local.get $end)))
          (local.set $hash (i32.mul
            (i32.xor (local.get $hash) (i32.load8_u (local.get $at)))
            (i32.const 0x01000193)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $next)))
      (local.get $hash))

    (func $write-hexadecimal (param $number i32)
      (local $at i32)
      (local.set $at (i32.const 552))
      (loop $next
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at) (i32.load8_u offset=512 (i32.and (local.get $number) (i32.const 15))))
        (local.set $number (i32.shr_u (local.get $number) (i32.const 4)))
        (br_if $next (i32.gt_u (local.get $at) (i32.const 544)))))
  )
  (core instance $main (instantiate $main))
  (alias core export $main "memory" (core memory $memory))
  (alias core export $main "realloc" (core func $realloc))
  (alias core export $main "forget" (core func $forget))
  (type $list-tools (func async (param "metadata" $metadata) (result (result $list-tools-response (error $error)))))
  (type $call-tool (func async
    (param "name" string) (param "arguments" $cbor) (param "metadata" $metadata) (result $tool-result)))
  (func $list-tools (type $list-tools)
    (canon lift (core func $main "list") (memory $memory) (realloc $realloc) (post-return $forget)))
  (func $call-tool (type $call-tool)
    (canon lift (core func $main "call") (memory $memory) (realloc $realloc) (post-return $forget)))
  (instance $tools
    (export "tool-result" (type $tool-result))
    (export "list-tools" (func $list-tools))
    (export "call-tool" (func $call-tool)))
  (export "act:tools/tool-provider@0.2.0" (instance $tools)))
