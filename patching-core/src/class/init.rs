use burn::tensor::Device;

/// What a constructor is told: the device, and which implementations go into its slots.
#[derive(Clone, Debug)]
pub struct Init {
    device: Device,
}

impl Init {
    /// Plain construction on `device`: every slot gets the class itself.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone() }
    }

    /// The device that parameters are made on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
