//! `UPDATE_EXPECT=1 cargo test` writes them anew.

use super::*;
use crate::{
    can_record_outputs, capture_outputs, config_defaults, merge_with_config_defaults, model_output, module_class,
    replaces,
};
use expect_test::expect;

#[test]
fn module_class_expands_to_a_slot_an_interface_and_impls() {
    let item = quote! {
        impl Attention {
            pub(crate) fn new(config: &Config, init: &Init) -> Self { Self }
            /// Attends.
            #[must_use]
            pub fn forward<'a>(&self, mut x: Tensor<3>, _: &'a Mask, (q, k): (Self, usize)) -> (Tensor<3>, Option<Tensor<4>>) { (x, None) }
        }
    };
    let tokens = module_class::entry(quote!(), item, &core()).expect("valid");
    expect![[r#"
        impl Attention {
            pub(crate) fn new(config: &Config, init: &Init) -> Self {
                Self
            }
            /// Attends.
            #[must_use]
            pub fn forward<'a>(
                &self,
                mut x: Tensor<3>,
                _: &'a Mask,
                (q, k): (Self, usize),
            ) -> (Tensor<3>, Option<Tensor<4>>) {
                (x, None)
            }
        }
        #[allow(clippy::all, clippy::pedantic, deprecated, private_interfaces)]
        impl Attention {
            ///A slot with a [`Attention`], or with what the patches of `init` put in its place.
            #[allow(dead_code)]
            pub(crate) fn slot(
                config: &Config,
                init: &Init,
            ) -> ::patching_core::class::Slot<Attention> {
                let __capture_construct = ::patching_core::class::Init::__construct::<
                    Attention,
                >(init);
                let init = __capture_construct.init(init);
                (__capture_construct.new)(config, init)
            }
        }
        ///What a [`Attention`] slot offers: the `forward` of whatever it holds.
        #[allow(clippy::all, clippy::pedantic, deprecated, private_interfaces, private_bounds)]
        pub trait AttentionInterface: ::patching_core::class::Erased<Attention> {
            #[doc(hidden)]
            fn __capture_forward<'a>(
                &self,
                x: Tensor<3>,
                __capture_argument_1: &'a Mask,
                __capture_argument_2: (Attention, usize),
            ) -> (Tensor<3>, Option<Tensor<4>>);
        }
        #[allow(clippy::all, clippy::pedantic, deprecated, private_interfaces)]
        impl dyn AttentionInterface {
            ///[`Attention::forward`] of whatever this slot holds.
            ///
            /// Attends.
            #[must_use]
            #[allow(dead_code)]
            #[inline]
            pub fn forward<'a>(
                &self,
                x: Tensor<3>,
                __capture_argument_1: &'a Mask,
                __capture_argument_2: (Attention, usize),
            ) -> (Tensor<3>, Option<Tensor<4>>) {
                match ::patching_core::__private::enter::<Attention>(self) {
                    ::core::option::Option::None => {
                        self.__capture_forward(x, __capture_argument_1, __capture_argument_2)
                    }
                    ::core::option::Option::Some(__capture_call) => {
                        __capture_call
                            .input(|__capture_keep| {
                                #[allow(unused_imports)]
                                use ::patching_core::__private::NoTensor as _;
                                ::patching_core::__private::Argument(&x).value(__capture_keep)
                            });
                        let __capture_output = self
                            .__capture_forward(x, __capture_argument_1, __capture_argument_2);
                        __capture_call.output::<Attention>(&__capture_output);
                        __capture_output
                    }
                }
            }
        }
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl<__M: ::patching_core::class::Implements<Attention>> AttentionInterface
        for ::patching_core::class::Hooked<__M> {
            #[inline]
            fn __capture_forward<'a>(
                &self,
                x: Tensor<3>,
                __capture_argument_1: &'a Mask,
                __capture_argument_2: (Attention, usize),
            ) -> (Tensor<3>, Option<Tensor<4>>) {
                (<__M as ::patching_core::class::Implements<
                    Attention,
                >>::FORWARD)(self.__module(), x, __capture_argument_1, __capture_argument_2)
            }
        }
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl ::patching_core::class::ModuleClass for Attention {
            const NAME: &'static str = "Attention";
            type Output = (Tensor<3>, Option<Tensor<4>>);
            type Interface = dyn AttentionInterface;
            type New<__M: 'static> = fn(&Config, &Init) -> __M;
            type Forward<__M: 'static> = for<'a> fn(
                &__M,
                Tensor<3>,
                &'a Mask,
                (Attention, usize),
            ) -> (Tensor<3>, Option<Tensor<4>>);
            #[inline]
            fn __boxed<__M: ::patching_core::class::Implements<Self>>(
                __capture_hooked: ::patching_core::class::Hooked<__M>,
            ) -> ::std::boxed::Box<Self::Interface> {
                ::std::boxed::Box::new(__capture_hooked)
            }
            fn __factory<__M: ::patching_core::class::Implements<Self>>() -> Self::New<
                ::patching_core::class::Slot<Self>,
            > {
                |config, init| ::patching_core::class::Slot::of(
                    (<__M as ::patching_core::class::Implements<Self>>::NEW)(config, init),
                )
            }
        }
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(deprecated)]
        impl ::patching_core::class::Implements<Attention> for Attention {
            const NEW: <Attention as ::patching_core::class::ModuleClass>::New<Self> = Self::new;
            const FORWARD: <Attention as ::patching_core::class::ModuleClass>::Forward<Self> = Self::forward;
        }
        ::patching_core::__private::inventory::submit! {
            ::patching_core::__private::ClassName { name : "Attention", module :
            ::core::module_path!() }
        }
    "#]]
    .assert_eq(&expanded(tokens, false));
}

#[test]
fn capture_outputs_wraps_the_body() {
    let item = quote! {
        /// Runs.
        #[must_use]
        #[traced]
        pub fn forward(&self, Inputs { ids, .. }: Inputs, output_attentions: Option<bool>, kwargs: &ForwardKwargs) -> Result<Output, MyError> {
            let next = || for x in ids { drop(x) };
            'outer: for layer in &self.layers {
                while next() { continue 'outer }
            }
            Ok(loop { break Output::new(ids) })
        }
    };
    expect![[r#"
        impl Model {
            /// Runs.
            #[must_use]
            #[allow(clippy::useless_conversion)]
            pub fn forward(
                &self,
                __capture_argument_0: Inputs,
                output_attentions: Option<bool>,
                kwargs: &ForwardKwargs,
            ) -> Result<Output, MyError> {
                let (__capture_model, __capture_config) = self.__capture_forward_parts();
                <Result<
                    Output,
                    MyError,
                > as ::patching_core::capture::Fallible>::from_result(
                    ::patching_core::__private::Runs::run(
                        &self.__capture_forward_runner(),
                        __capture_model,
                        __capture_config,
                        kwargs,
                        &::patching_core::__private::Options {
                            tie: false,
                            arguments: &[
                                (
                                    "attentions",
                                    ::patching_core::capture::Flag::from(
                                        ::core::clone::Clone::clone(&output_attentions),
                                    ),
                                ),
                            ],
                        },
                        || <Result<
                            Output,
                            MyError,
                        > as ::patching_core::capture::Fallible>::into_result(
                            self
                                .__capture_forward_body(
                                    __capture_argument_0,
                                    output_attentions,
                                    kwargs,
                                ),
                        ),
                    ),
                )
            }
            /**Runs [`forward`](Self::forward) for its recorded values alone: it stops once they are there, and what it would have computed after that is not in the result.

        # Errors

        Those of `forward`.*/
            #[allow(dead_code, deprecated, clippy::all, clippy::pedantic)]
            pub fn forward_captures(
                &self,
                __capture_argument_0: Inputs,
                output_attentions: Option<bool>,
                kwargs: &ForwardKwargs,
            ) -> ::core::result::Result<
                ::patching_core::capture::Captures<
                    <Result<Output, MyError> as ::patching_core::capture::Fallible>::Output,
                >,
                <Result<Output, MyError> as ::patching_core::capture::Fallible>::Error,
            > {
                let (__capture_model, __capture_config) = self.__capture_forward_parts();
                ::patching_core::__private::Runs::run_captures(
                    &self.__capture_forward_runner(),
                    __capture_model,
                    __capture_config,
                    kwargs,
                    &::patching_core::__private::Options {
                        tie: false,
                        arguments: &[
                            (
                                "attentions",
                                ::patching_core::capture::Flag::from(
                                    ::core::clone::Clone::clone(&output_attentions),
                                ),
                            ),
                        ],
                    },
                    || <Result<
                        Output,
                        MyError,
                    > as ::patching_core::capture::Fallible>::into_result(
                        self
                            .__capture_forward_body(
                                __capture_argument_0,
                                output_attentions,
                                kwargs,
                            ),
                    ),
                )
            }
            /**Runs [`forward`](Self::forward) and gives its output as `return_dict` says: the struct, or the tuple of its present fields.

        # Errors

        Those of `forward`.*/
            #[allow(dead_code, deprecated, clippy::all, clippy::pedantic)]
            pub fn forward_returned(
                &self,
                __capture_argument_0: Inputs,
                output_attentions: Option<bool>,
                kwargs: &ForwardKwargs,
            ) -> ::core::result::Result<
                ::patching_core::capture::Returned<
                    <Result<Output, MyError> as ::patching_core::capture::Fallible>::Output,
                >,
                <Result<Output, MyError> as ::patching_core::capture::Fallible>::Error,
            > {
                let (_, __capture_config) = self.__capture_forward_parts();
                ::patching_core::__private::Runs::returned(
                    &self.__capture_forward_runner(),
                    __capture_config,
                    kwargs,
                    || <Result<
                        Output,
                        MyError,
                    > as ::patching_core::capture::Fallible>::into_result(
                        self.forward(__capture_argument_0, output_attentions, kwargs),
                    ),
                )
            }
            /**Which slots a request would record in [`forward`](Self::forward); runs nothing.

        # Errors

        What can be known of a request that cannot be met before anything runs.*/
            #[allow(dead_code, deprecated, clippy::all, clippy::pedantic)]
            pub fn forward_plan(
                &self,
                kwargs: &::patching_core::capture::ForwardKwargs,
            ) -> ::core::result::Result<
                ::patching_core::capture::CapturePlan,
                ::patching_core::capture::CaptureError,
            > {
                let (__capture_model, __capture_config) = self.__capture_forward_parts();
                ::patching_core::__private::plan(__capture_model, __capture_config, kwargs)
            }
            #[doc(hidden)]
            #[allow(dead_code, deprecated, clippy::all, clippy::pedantic)]
            #[inline]
            fn __capture_forward_runner(
                &self,
            ) -> impl ::patching_core::__private::Runs<
                <Result<Output, MyError> as ::patching_core::capture::Fallible>::Output,
                <Result<Output, MyError> as ::patching_core::capture::Fallible>::Error,
            > {
                ::patching_core::__private::Runner::of::<Result<Output, MyError>>()
            }
            #[doc(hidden)]
            #[allow(dead_code, deprecated, clippy::all, clippy::pedantic)]
            #[inline]
            fn __capture_forward_parts(
                &self,
            ) -> (
                &impl ::patching_core::capture::CanRecordOutputs,
                &impl ::patching_core::capture::ConfigDefaults,
            ) {
                (self, &self.config)
            }
            #[doc(hidden)]
            #[allow(clippy::unnecessary_wraps, clippy::too_many_arguments)]
            #[traced]
            fn __capture_forward_body(
                &self,
                Inputs { ids, .. }: Inputs,
                output_attentions: Option<bool>,
                kwargs: &ForwardKwargs,
            ) -> Result<Output, MyError> {
                let _ = (&kwargs, &output_attentions);
                let next = || {
                    for x in ids {
                        drop(x)
                    }
                };
                'outer: for layer in &self.layers {
                    if ::patching_core::__private::is_complete() {
                        return ::core::result::Result::Err(
                            ::core::convert::From::from(
                                ::patching_core::capture::CaptureError::Complete,
                            ),
                        );
                    }
                    while next() {
                        if ::patching_core::__private::is_complete() {
                            return ::core::result::Result::Err(
                                ::core::convert::From::from(
                                    ::patching_core::capture::CaptureError::Complete,
                                ),
                            );
                        }
                        continue 'outer;
                    }
                }
                Ok(
                    loop {
                        if ::patching_core::__private::is_complete() {
                            return ::core::result::Result::Err(
                                ::core::convert::From::from(
                                    ::patching_core::capture::CaptureError::Complete,
                                ),
                            );
                        }
                        break Output::new(ids);
                    },
                )
            }
            #[doc(hidden)]
            #[allow(dead_code, deprecated, clippy::all, clippy::pedantic)]
            pub(crate) fn __capture_output() -> &'static Result<Output, MyError> {
                ::core::unreachable!()
            }
        }
    "#]].assert_eq(&method(capture_outputs::entry, quote!(tie_last_hidden_states = false), item));
}

#[test]
fn merges_stand_at_the_head_of_the_body() {
    let item = quote! {
        fn forward(&self, mut use_cache: Option<bool>, depth: Option<usize>, vision_feature_select_strategy: Option<String>, kwargs: &ForwardKwargs) -> Result<Output, MyError> {
            todo!()
        }
    };
    expect![[r#"
        impl Model {
            fn forward(
                &self,
                use_cache: Option<bool>,
                depth: Option<usize>,
                vision_feature_select_strategy: Option<String>,
                kwargs: &ForwardKwargs,
            ) -> Result<Output, MyError> {
                let mut use_cache = ::patching_core::__private::merged_use_cache(
                    use_cache.or(kwargs.get_use_cache()),
                    ::core::clone::Clone::clone(&self.settings.use_cache),
                    || {
                        #[allow(unused_imports)]
                        use ::patching_core::__private::DeviceByWalk as _;
                        ::patching_core::__private::DeviceOf(self).get()
                    },
                );
                let depth = ::patching_core::__private::merged(
                    depth,
                    ::core::clone::Clone::clone(&self.settings.depth),
                );
                let vision_feature_select_strategy = ::patching_core::__private::merged_select_strategy(
                    vision_feature_select_strategy,
                    ::core::clone::Clone::clone(&self.settings.vision_feature_select_strategy),
                )?;
                let __capture_kwargs = ::patching_core::__private::merged_kwargs(
                    &kwargs,
                    &self.settings,
                    || {
                        #[allow(unused_imports)]
                        use ::patching_core::__private::DeviceByWalk as _;
                        ::patching_core::__private::DeviceOf(self).get()
                    },
                );
                let __capture_kwargs = ::patching_core::__private::with_arguments(
                    &__capture_kwargs,
                    use_cache,
                    __capture_kwargs.get_is_causal(),
                );
                let kwargs = &*__capture_kwargs;
                let _ = &kwargs;
                todo!()
            }
        }
    "#]]
    .assert_eq(&method(merge_with_config_defaults::entry, quote!(depth, config = self.settings), item));
}

#[test]
fn a_declaration_is_a_constant() {
    let item = quote! {
        #[can_record_outputs(
            hidden_states = Block,
            attentions = [Attention, "Other", OutputRecorder(crate::Third, index = -1, layer_name = "self_attn", num_hidden_layers_key = "text.num_layers")],
        )]
        struct Model<const N: usize> { recorders: OutputRecorders }
    };
    let tokens = can_record_outputs::entry(item, &core()).expect("valid");
    expect![[r##"
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl<const N: usize> ::patching_core::capture::CanRecordOutputs for Model<N>
        where
            Model<N>: ::patching_core::__private::Module + 'static,
        {
            const MODEL: &'static str = "Model";
            #[allow(unused_braces)]
            const RECORDERS: &'static [::patching_core::capture::OutputRecorder] = {
                #[allow(unused_imports)]
                use ::patching_core::__private::{
                    InResult as _, NoCaptureOutputs as _, NotInResult as _,
                };
                &[
                    ::patching_core::capture::Key::__new(
                            "hidden_states",
                            { || &Self::__capture_output().__capture_read().hidden_states },
                        )
                        .__class::<Block, 0isize>(),
                    ::patching_core::capture::Key::__new(
                            "attentions",
                            { || &Self::__capture_output().__capture_read().attentions },
                        )
                        .__class::<Attention, 1isize>(),
                    ::patching_core::capture::Key::__new(
                            "attentions",
                            { || &Self::__capture_output().__capture_read().attentions },
                        )
                        .__name("Other", 1isize),
                    ::patching_core::capture::Key::__new(
                            "attentions",
                            { || &Self::__capture_output().__capture_read().attentions },
                        )
                        .__class::<crate::Third, -1isize>()
                        .__layer_name("self_attn")
                        .__num_hidden_layers(|__capture_model| {
                            let __capture_model = __capture_model.downcast_ref::<Self>()?;
                            ::patching_core::__private::LayerCount::layer_count({
                                &__capture_model.config.text.num_layers
                            })
                        }),
                ]
            };
            fn output_recorders(&self) -> &::patching_core::capture::OutputRecorders {
                &self.recorders
            }
            fn __first_device(
                &self,
            ) -> ::core::option::Option<::patching_core::__private::Device> {
                #[allow(unused_imports)]
                use ::patching_core::__private::{DeviceByWalk as _, NoDevice as _};
                ::core::option::Option::None
                    .or_else(|| (&::patching_core::__private::DeviceOf(&self.recorders)).get())
            }
        }
    "##]]
    .assert_eq(&expanded(tokens, false));
}

#[test]
fn an_output_knows_its_fields() {
    let item = quote! {
        pub(crate) struct Output {
            last_hidden_state: Tensor<3>,
            cache: Option<Cache>,
            hidden_states: Captured<Tensor<3>>,
        }
    };
    let tokens = model_output::entry(item, &core()).expect("valid");
    expect![[r#"
        impl Output {
            ///An output with these values and nothing recorded; `cache` left out.
            #[allow(dead_code, clippy::all, clippy::pedantic)]
            pub(crate) fn new(last_hidden_state: Tensor<3>) -> Self {
                Self {
                    last_hidden_state,
                    cache: ::core::option::Option::None,
                    hidden_states: ::core::default::Default::default(),
                }
            }
        }
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl ::patching_core::capture::ModelOutput for Output {
            const NAME: &'static str = "Output";
            const KEYS: &'static [&'static str] = &["hidden_states"];
            fn __fields(&self) -> ::std::vec::Vec<::patching_core::__private::Field> {
                ::std::vec![
                    ::patching_core::__private::Field::new("last_hidden_state", & self
                    .last_hidden_state), ::patching_core::__private::Field::new("cache", & self
                    .cache), ::patching_core::__private::Field::new("hidden_states", & self
                    .hidden_states)
                ]
            }
            fn __fill(
                &mut self,
                __capture_key: &str,
                __capture_raw: ::patching_core::__private::Raw,
            ) -> ::core::result::Result<(), ::patching_core::capture::CaptureError> {
                match __capture_key {
                    "hidden_states" => self.hidden_states.__fill(__capture_key, __capture_raw),
                    _ => {
                        ::core::result::Result::Err(::patching_core::capture::CaptureError::NoField {
                            output: Self::NAME,
                            key: ::std::string::String::from(__capture_key),
                            fields: Self::KEYS.to_vec(),
                        })
                    }
                }
            }
            fn __take(
                &mut self,
                __capture_key: &str,
            ) -> ::core::option::Option<::patching_core::__private::Raw> {
                match __capture_key {
                    "hidden_states" => self.hidden_states.__take(),
                    _ => ::core::option::Option::None,
                }
            }
            fn __tie(&mut self, __capture_keep: ::patching_core::capture::Keep) {
                if let ::core::option::Option::Some(__capture_last) = ::patching_core::capture::Element::value(
                    &self.last_hidden_state,
                    __capture_keep,
                ) {
                    self.hidden_states.__tie(&__capture_last);
                }
            }
        }
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl ::patching_core::capture::OutputField for Output {
            fn output_value(
                &self,
            ) -> ::core::option::Option<::patching_core::capture::OutputValue> {
                ::core::option::Option::Some(
                    ::patching_core::capture::OutputValue::Nested(
                        ::patching_core::capture::ModelOutput::to_tuple(self),
                    ),
                )
            }
        }
    "#]]
    .assert_eq(&expanded(tokens, false));
}

#[test]
fn a_config_answers_for_its_fields() {
    let item = quote! {
        struct Config { width: usize, output_attentions: Option<bool>, use_cache: bool }
    };
    let tokens = config_defaults::entry(item, &core()).expect("valid");
    expect![[r##"
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::useless_conversion)]
        impl ::patching_core::capture::ConfigDefaults for Config {
            fn output_flag(
                &self,
                __capture_key: &str,
            ) -> ::core::option::Option<::patching_core::capture::Flag> {
                match __capture_key {
                    "attentions" => {
                        ::core::option::Option::Some(
                            ::patching_core::capture::Flag::from(
                                ::core::clone::Clone::clone(&self.output_attentions),
                            ),
                        )
                    }
                    _ => ::core::option::Option::None,
                }
            }
            fn use_cache(&self) -> ::core::option::Option<bool> {
                ::core::convert::Into::into(::core::clone::Clone::clone(&self.use_cache))
            }
        }
    "##]]
    .assert_eq(&expanded(tokens, false));
}

#[test]
fn replaces_expands_to_checks_and_a_value() {
    let item = quote! {
        #[cfg(unix)]
        impl<const N: usize> Fused<N> {
            pub fn new<C: AnyConfig>(config: &C, init: &Init) -> Self { Self }
            pub fn forward(&self, x: Tensor<3>) -> Tensor<3> { x }
        }
    };
    let tokens = replaces::entry(quote!(llama::LlamaAttention, Other), item, &core()).expect("valid");
    expect![[r#"
        #[cfg(unix)]
        impl<const N: usize> Fused<N> {
            pub fn new<C: AnyConfig>(config: &C, init: &Init) -> Self {
                Self
            }
            pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
                x
            }
        }
        #[cfg(unix)]
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl<const N: usize> ::patching_core::class::Implements<llama::LlamaAttention>
        for Fused<N> {
            const NEW: <llama::LlamaAttention as ::patching_core::class::ModuleClass>::New<
                Self,
            > = Self::new;
            const FORWARD: <llama::LlamaAttention as ::patching_core::class::ModuleClass>::Forward<
                Self,
            > = Self::forward;
        }
        #[cfg(unix)]
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl<const N: usize> ::patching_core::class::Implements<Other> for Fused<N> {
            const NEW: <Other as ::patching_core::class::ModuleClass>::New<Self> = Self::new;
            const FORWARD: <Other as ::patching_core::class::ModuleClass>::Forward<Self> = Self::forward;
        }
        #[cfg(unix)]
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        #[allow(clippy::all, clippy::pedantic, deprecated)]
        impl<const N: usize> ::patching_core::__private::Replacement for Fused<N> {
            fn replacement_class() -> ::patching_core::__private::ReplacementClass {
                ::patching_core::__private::ReplacementClass::of::<Self>()
                    .standing_in_for::<llama::LlamaAttention>()
                    .standing_in_for::<Other>()
                    .build()
            }
        }
    "#]]
    .assert_eq(&expanded(tokens, false));
}
