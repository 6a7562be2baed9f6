//! Expands `#[tool]`: adds a type with the name of the function that implements
//! `palisade_guest::Tool`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Result};

use crate::function::{Function, Header};
use crate::options::Options;

/// Expands the attribute. The item is emitted unchanged, even with an error, so that one mistake
/// causes one message.
pub(crate) fn tool(options: TokenStream, item: &TokenStream) -> TokenStream {
    let beside = match Header::of(item) {
        Ok(header) => expand(options, &header).unwrap_or_else(|error| {
            let error = error.to_compile_error();
            // No type can stand beside a method.
            let stand_in = (!header.is_method()).then(|| stand_in(&header));
            quote!(#error #stand_in)
        }),
        Err(error) => {
            let error = error.to_compile_error();
            // `export!` names a type that stands there already.
            let ty = syn::parse2::<DeriveInput>(item.clone()).ok();
            let faulty = ty.filter(|ty| ty.generics.params.is_empty()).map(|ty| faulty(&ty.ident));
            quote!(#error #faulty)
        }
    };
    quote! {
        #[allow(clippy::needless_pass_by_value, reason = "a tool owns its arguments")]
        #item
        #beside
    }
}

/// Returns a type in place of the one that a faulty function cannot have, for `export!`: without it
/// the compiler would add a message about the type that is missing.
fn stand_in(header: &Header) -> TokenStream {
    let (visibility, ident) = (&header.visibility, header.ident());
    let conditions: Vec<_> = header.conditions().collect();
    let faulty = faulty(ident);
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(dead_code, non_camel_case_types, unreachable_pub, reason = "a faulty tool")]
        #visibility struct #ident {}

        #(#conditions)*
        #faulty
    }
}

/// Returns the implementation of a tool that is never called.
fn faulty(ident: &Ident) -> TokenStream {
    // No tool can have this name: two with the same one would be a second fault.
    let name = format!("{ident} is faulty");
    quote! {
        impl ::palisade_guest::Tool for #ident {
            const NAME: &'static str = #name;

            fn definition() -> ::palisade_guest::Definition {
                ::std::unreachable!()
            }

            fn execute(
                _: &str,
                _: &::palisade_guest::Context,
            ) -> ::palisade_guest::Result<::palisade_guest::Output> {
                ::std::unreachable!()
            }
        }
    }
}

fn expand(options: TokenStream, header: &Header) -> Result<TokenStream> {
    let function = Function::of(header)?;
    let options = Options::parse(options)?;
    let name = match &options.name {
        Some(name) => name.value(),
        None => function.name()?,
    };
    let Function { ident, visibility, conditions, .. } = &function;
    // This span suppresses an unused warning for the type: the compiler warns of the function
    // already.
    let mut name_of_type = ident.clone();
    name_of_type.set_span(Span::mixed_site());
    let (definition, execute) = (definition(&function, &options), execute(&function));
    Ok(quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(
            missing_debug_implementations,
            non_camel_case_types,
            unreachable_pub,
            reason = "the name of the function, for `export!`"
        )]
        #visibility struct #name_of_type {}

        #(#conditions)*
        #[automatically_derived]
        impl ::palisade_guest::Tool for #ident {
            const NAME: &'static str = #name;
            #definition
            #execute
        }
    })
}

fn definition(function: &Function, options: &Options) -> TokenStream {
    let Options { side_effects, title, idempotent, timeout_ms, metadata, .. } = options;
    let title = optional(title.as_ref().map(|title| quote!(::std::string::String::from(#title))));
    let timeout_ms = optional(timeout_ms.as_ref());
    let description = &function.description;
    let input = match &function.arguments {
        Some(ty) => {
            quote_spanned!(ty.span()=> ::palisade_guest::__private::input::<#ty>(#metadata))
        }
        None => quote!(::palisade_guest::__private::no_input(#metadata)),
    };
    let returns = &function.returns;
    let output =
        quote_spanned!(returns.span()=> ::palisade_guest::__private::output_schema::<#returns>());
    quote! {
        fn definition() -> ::palisade_guest::Definition {
            let input = #input;
            ::palisade_guest::Definition {
                name: ::std::string::String::from(<Self as ::palisade_guest::Tool>::NAME),
                title: #title,
                description: ::std::string::String::from(#description),
                input_schema: input.schema,
                output_schema: #output,
                side_effects: ::palisade_guest::SideEffects::#side_effects,
                idempotent: #idempotent,
                timeout_ms: #timeout_ms,
                metadata: input.metadata,
            }
        }
    }
}

fn execute(function: &Function) -> TokenStream {
    // Locals with a mixed-site span cannot collide with the name of the function.
    let (input, context) =
        (Ident::new("input", Span::mixed_site()), Ident::new("context", Span::mixed_site()));
    let ident = &function.ident;
    let arguments = function.arguments.as_ref().map(
        |ty| quote_spanned!(ty.span()=> ::palisade_guest::__private::arguments::<#ty>(#input)?,),
    );
    let (begin, passed) = match &function.context {
        Some(ty) => {
            let mut at_its_type = context.clone();
            at_its_type.set_span(Span::mixed_site().located_at(ty.span()));
            (quote!(#context.begin();), quote!(#at_its_type))
        }
        None => (TokenStream::new(), TokenStream::new()),
    };
    let returns = &function.returns;
    let convert =
        quote_spanned!(returns.span()=> <#returns as ::palisade_guest::IntoOutput>::into_output);
    quote! {
        fn execute(
            #input: &str,
            #context: &::palisade_guest::Context,
        ) -> ::palisade_guest::Result<::palisade_guest::Output> {
            let (_, _) = (#input, #context);
            #begin
            #convert(#ident(#arguments #passed))
        }
    }
}

fn optional<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
    match value {
        Some(value) => quote!(::std::option::Option::Some(#value)),
        None => quote!(::std::option::Option::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::{Delimiter, Group};

    fn text(options: TokenStream, item: &TokenStream) -> String {
        tool(options, item).to_string()
    }

    #[test]
    fn function_is_returned_unchanged() {
        let item = quote!(
            #[doc = " Does it."]
            #[inline]
            pub fn act(args: Args) -> u8 {
                args.len()
            }
        );
        assert!(text(quote!(side_effects = "read"), &item).contains(&item.to_string()));
    }

    #[test]
    fn function_survives_an_error() {
        let item = quote!(
            fn act() {}
        );
        let expanded = text(quote!(side_effects = "read"), &item);
        assert!(expanded.contains(&item.to_string()));
        assert_eq!(expanded.matches("compile_error").count(), 1);
        assert!(expanded.contains("impl :: palisade_guest :: Tool for act"), "{expanded}");
    }

    #[test]
    fn fault_in_the_body_is_left_to_the_compiler() {
        let item = quote!(
            #[doc = " Does it."]
            fn act() {
                let x = ;
            }
        );
        let expanded = text(quote!(side_effects = "read"), &item);
        assert!(!expanded.contains("compile_error"), "{expanded}");
        assert!(expanded.contains("impl :: palisade_guest :: Tool for act"), "{expanded}");
    }

    #[test]
    fn body_from_another_macro_is_accepted() {
        // A fragment of kind `block` comes in a group without delimiters.
        let body = Group::new(Delimiter::None, quote!({ 1 }));
        let item = quote!(
            #[doc = " Does it."]
            fn act() -> u8 #body
        );
        assert!(!text(quote!(side_effects = "none"), &item).contains("compile_error"));
    }

    #[test]
    fn item_without_a_body_is_refused() {
        for item in [
            quote!(
                struct Act;
            ),
            quote!(
                fn act();
            ),
        ] {
            let expanded = text(quote!(side_effects = "read"), &item);
            assert_eq!(expanded.matches("compile_error").count(), 1);
        }
    }

    #[test]
    fn refused_type_can_stand_in_a_list_of_tools() {
        let expanded = text(
            quote!(side_effects = "read"),
            &quote!(
                struct Act;
            ),
        );
        assert!(expanded.contains("impl :: palisade_guest :: Tool for Act"), "{expanded}");
        assert_eq!(expanded.matches("struct Act").count(), 1, "{expanded}");
    }

    #[test]
    fn generated_type_has_visibility_and_conditions() {
        let expanded = text(
            quote!(side_effects = "write", name = "other"),
            &quote!(
                #[doc = " Does it."]
                #[cfg(unix)]
                pub(super) fn act() {}
            ),
        );
        assert!(expanded.contains("pub (super) struct act { }"), "{expanded}");
        assert_eq!(expanded.matches("# [cfg (unix)]").count(), 3);
        assert!(expanded.contains("NAME : & 'static str = \"other\""));
        assert!(expanded.contains("SideEffects :: Write"));
    }

    #[test]
    fn name_option_replaces_invalid_function_name() {
        let item = quote!(
            #[doc = " Does it."]
            fn _act() {}
        );
        assert!(text(quote!(side_effects = "none"), &item).contains("compile_error"));
        assert!(
            !text(quote!(side_effects = "none", name = "act"), &item).contains("compile_error")
        );
    }
}
