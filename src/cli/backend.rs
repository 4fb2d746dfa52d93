//! The device that was asked for.

use super::args::Backend;
use super::error::CliError;
use burn::tensor::Device;

/// A device, and what it is called.
pub(crate) struct Chosen {
    pub(crate) backend: Backend,
    pub(crate) device: Device,
}

/// Those that were built in, the preferred first.
pub(crate) fn built_in() -> Vec<Backend> {
    let all = [
        (Backend::Flex, cfg!(feature = "flex")),
        (Backend::Ndarray, cfg!(feature = "ndarray")),
        (Backend::Wgpu, cfg!(feature = "wgpu")),
    ];
    all.into_iter().filter_map(|(backend, is_there)| is_there.then_some(backend)).collect()
}

/// The device of the backend asked for, else of the first that was built in.
pub(crate) fn choose(asked: Option<Backend>) -> Result<Chosen, CliError> {
    let available = built_in();
    let backend = match asked {
        Some(backend) if available.contains(&backend) => backend,
        Some(backend) => return Err(CliError::NoBackend { backend, available }),
        None => *available.first().ok_or(CliError::NoBackends)?,
    };
    let device = device(backend).ok_or(CliError::NoBackend { backend, available })?;
    if backend == Backend::Wgpu {
        try_out(backend, &device)?;
    }
    Ok(Chosen { backend, device })
}

fn device(backend: Backend) -> Option<Device> {
    match backend {
        #[cfg(feature = "flex")]
        Backend::Flex => Some(Device::flex()),
        #[cfg(feature = "ndarray")]
        #[allow(deprecated, reason = "the backend is supported for as long as it exists")]
        Backend::Ndarray => Some(Device::ndarray()),
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => Some(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[allow(unreachable_patterns, reason = "not with every set of features")]
        _ => None,
    }
}

/// A first operation, which is when a machine without a graphics driver lets Burn panic.
fn try_out(backend: Backend, device: &Device) -> Result<(), CliError> {
    use burn::tensor::Tensor;
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let tried = std::panic::catch_unwind(|| Tensor::<1>::zeros([1], device).into_data());
    std::panic::set_hook(hook);
    tried.map(drop).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        CliError::BrokenBackend { backend, problem: said.unwrap_or("it cannot compute").to_owned() }
    })
}
