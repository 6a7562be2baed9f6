//! Parses and checks the function under `#[tool]`.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Result, ReturnType, Signature, Type, Visibility};

use crate::description::description;
use crate::options::check_name;

const ACCEPTED: &str =
    "a tool is a free function: `fn()`, `fn(Args)`, `fn(&Context)` or `fn(Args, &Context)`";

/// A function without its body, which the compiler reads: a fault in it has one message.
pub(crate) struct Header {
    /// The attributes, the doc comment among them.
    attributes: Vec<Attribute>,
    /// The visibility.
    pub(crate) visibility: Visibility,
    signature: Signature,
}

impl Header {
    /// Parses the item under the attribute.
    pub(crate) fn of(item: &TokenStream) -> Result<Self> {
        syn::parse2(item.clone()).map_err(|_| Error::new(item.span(), ACCEPTED))
    }

    /// Returns the name of the function.
    pub(crate) fn ident(&self) -> &Ident {
        &self.signature.ident
    }

    /// Returns true for a function with `self`.
    pub(crate) fn is_method(&self) -> bool {
        self.signature.receiver().is_some()
    }

    /// Returns the `cfg` attributes.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }
}

impl Parse for Header {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let header = Self {
            attributes: input.call(Attribute::parse_outer)?,
            visibility: input.parse()?,
            signature: input.parse()?,
        };
        let body;
        syn::braced!(body in input);
        body.parse::<TokenStream>()?;
        Ok(header)
    }
}

/// The parts of an accepted function that the expansion needs.
pub(crate) struct Function {
    /// The name of the function, and of the generated type.
    pub(crate) ident: Ident,
    /// The visibility of the function and of the type.
    pub(crate) visibility: Visibility,
    /// The `cfg` attributes of the function.
    pub(crate) conditions: Vec<Attribute>,
    /// The type of the arguments, if the function takes any.
    pub(crate) arguments: Option<Type>,
    /// The type of the reference to the context, if the function takes it.
    pub(crate) context: Option<Type>,
    /// The return type; `()` if there is none.
    pub(crate) returns: Type,
    /// The doc comment.
    pub(crate) description: String,
}

impl Function {
    /// Checks the function under the attribute.
    pub(crate) fn of(header: &Header) -> Result<Self> {
        let signature = &header.signature;
        check(signature)?;
        let (arguments, context) = parameters(signature)?;
        Ok(Self {
            description: description(&header.attributes, signature.ident.span())?,
            conditions: header.conditions().cloned().collect(),
            visibility: header.visibility.clone(),
            returns: match &signature.output {
                ReturnType::Default => syn::parse_quote!(()),
                ReturnType::Type(_, returns) => (**returns).clone(),
            },
            ident: signature.ident.clone(),
            arguments,
            context,
        })
    }

    /// Returns the default name of the tool: that of the function.
    pub(crate) fn name(&self) -> Result<String> {
        let name = self.ident.unraw().to_string();
        check_name(&name, self.ident.span())?;
        Ok(name)
    }
}

fn check(signature: &Signature) -> Result<()> {
    let refuse = |tokens: &dyn quote::ToTokens, what: &str| {
        Err(Error::new_spanned(
            tokens.to_token_stream(),
            format!("a tool cannot be {what}; {ACCEPTED}"),
        ))
    };
    if let Some(token) = &signature.asyncness {
        return refuse(token, "async");
    }
    if let Some(token) = &signature.unsafety {
        return refuse(token, "unsafe");
    }
    if let Some(token) = &signature.abi {
        return refuse(token, "extern");
    }
    if !signature.generics.params.is_empty() {
        return refuse(&signature.generics, "generic");
    }
    if let Some(clause) = &signature.generics.where_clause {
        return refuse(clause, "generic");
    }
    if let ReturnType::Type(_, returns) = &signature.output
        && matches!(**returns, Type::ImplTrait(_))
    {
        return Err(Error::new_spanned(
            returns,
            "a tool must name the type that it returns, since its schema follows from it",
        ));
    }
    if let Some(variadic) = &signature.variadic {
        return refuse(variadic, "variadic");
    }
    Ok(())
}

/// Returns the types of the arguments and of the context, in this order.
fn parameters(signature: &Signature) -> Result<(Option<Type>, Option<Type>)> {
    let mut types = Vec::new();
    for input in &signature.inputs {
        types.push(parameter(input)?);
    }
    match types.as_slice() {
        [] => Ok((None, None)),
        [one] if is_reference(one) => Ok((None, Some(one.clone()))),
        [one] => Ok((Some(one.clone()), None)),
        [arguments, context] if !is_reference(arguments) && is_reference(context) => {
            Ok((Some(arguments.clone()), Some(context.clone())))
        }
        _ => {
            let message = format!("{ACCEPTED}; several arguments are the fields of one struct");
            Err(Error::new_spanned(&signature.inputs, message))
        }
    }
}

fn parameter(input: &FnArg) -> Result<Type> {
    match input {
        FnArg::Receiver(receiver) => {
            Err(Error::new_spanned(receiver, format!("a tool cannot be a method; {ACCEPTED}")))
        }
        FnArg::Typed(typed) if matches!(*typed.ty, Type::ImplTrait(_)) => {
            Err(Error::new_spanned(&typed.ty, format!("a tool cannot be generic; {ACCEPTED}")))
        }
        FnArg::Typed(typed) if matches!(&*typed.ty, Type::Reference(reference) if reference.mutability.is_some()) => {
            Err(Error::new_spanned(&typed.ty, format!("a tool cannot borrow mutably; {ACCEPTED}")))
        }
        FnArg::Typed(typed) => Ok((*typed.ty).clone()),
    }
}

/// Returns true for `&T`. Arguments are owned, so that only the context can be a reference,
/// under any name of its type.
fn is_reference(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) => true,
        Type::Paren(inner) => is_reference(&inner.elem),
        Type::Group(inner) => is_reference(&inner.elem),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use quote::{ToTokens, quote};

    /// Parses `function` with a doc comment added.
    fn read(function: &TokenStream) -> Result<Function> {
        Header::of(&quote! { #[doc = " Does it."] #function })
            .and_then(|header| Function::of(&header))
    }

    fn refusal(function: &TokenStream) -> String {
        read(function).err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn shape(function: &TokenStream) -> (bool, bool) {
        let function = read(function).unwrap();
        (function.arguments.is_some(), function.context.is_some())
    }

    #[test]
    fn four_signatures_are_accepted() {
        assert_eq!(
            shape(&quote!(
                fn a() {}
            )),
            (false, false)
        );
        assert_eq!(
            shape(&quote!(
                fn a(args: Args) {}
            )),
            (true, false)
        );
        assert_eq!(
            shape(&quote!(
                fn a(ctx: &Context) {}
            )),
            (false, true)
        );
        assert_eq!(
            shape(&quote!(
                fn a(args: Args, ctx: &palisade_guest::Context) {}
            )),
            (true, true)
        );
        assert_eq!(
            shape(&quote!(
                fn a(Args { b, .. }: Args, _: &Context) {}
            )),
            (true, true)
        );
    }

    #[test]
    fn other_signatures_are_refused_with_the_accepted_ones() {
        for function in [
            quote!(
                fn a(a: A, b: B) {}
            ),
            quote!(
                fn a(ctx: &Context, args: Args) {}
            ),
            quote!(
                fn a(a: A, b: &Context, c: C) {}
            ),
            quote!(
                fn a(a: &A, b: &Context) {}
            ),
        ] {
            let message = refusal(&function);
            assert_eq!(
                message,
                format!("{ACCEPTED}; several arguments are the fields of one struct")
            );
        }
        assert_eq!(
            refusal(&quote!(
                fn a(ctx: &mut Context) {}
            )),
            format!("a tool cannot borrow mutably; {ACCEPTED}")
        );
    }

    #[test]
    fn functions_of_other_kinds_are_refused_by_name() {
        for (function, what) in [
            (
                quote!(
                    async fn a() {}
                ),
                "async",
            ),
            (
                quote!(
                    unsafe fn a() {}
                ),
                "unsafe",
            ),
            (
                quote!(
                    extern "C" fn a() {}
                ),
                "extern",
            ),
            (
                quote!(
                    fn a<T>(args: T) {}
                ),
                "generic",
            ),
            (
                quote!(
                    fn a<'c>(ctx: &'c Context) {}
                ),
                "generic",
            ),
            (
                quote!(
                    fn a(args: Args)
                    where
                        Args: Sized,
                    {
                    }
                ),
                "generic",
            ),
            (
                quote!(
                    fn a(args: impl Clone) {}
                ),
                "generic",
            ),
            (
                quote!(
                    fn a(&self) {}
                ),
                "a method",
            ),
            (
                quote!(
                    fn a(self, ctx: &Context) {}
                ),
                "a method",
            ),
        ] {
            let message = refusal(&function);
            assert!(
                message.starts_with(&format!("a tool cannot be {what}; {ACCEPTED}")),
                "{what}: {message}"
            );
        }
    }

    #[test]
    fn return_type_without_a_name_is_refused() {
        assert!(
            refusal(&quote!(
                fn a() -> impl IntoOutput {}
            ))
            .contains("must name the type that it returns")
        );
    }

    #[test]
    fn items_other_than_functions_are_refused() {
        assert_eq!(
            refusal(&quote!(
                struct A;
            )),
            ACCEPTED
        );
        assert_eq!(
            refusal(&quote!(
                fn a();
            )),
            ACCEPTED
        );
        assert_eq!(refusal(&quote!(fn a(Args) {})), ACCEPTED);
    }

    #[test]
    fn attributes_and_visibility_are_kept() {
        let function = read(&quote!(
            #[cfg(unix)]
            #[inline]
            pub(crate) fn r#type() -> Result<String> {}
        ))
        .unwrap();
        assert_eq!(function.conditions.len(), 1);
        assert_eq!(function.visibility.to_token_stream().to_string(), "pub (crate)");
        assert_eq!(function.returns.to_token_stream().to_string(), "Result < String >");
        assert_eq!(function.description, "Does it.");
        assert_eq!(function.name().unwrap(), "type");
    }

    #[test]
    fn function_name_invalid_for_a_tool_is_refused() {
        assert!(
            read(&quote!(
                fn _hidden() {}
            ))
            .unwrap()
            .name()
            .is_err()
        );
    }
}
