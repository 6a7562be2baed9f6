//! `palisade sign`: signs a plugin, in the form of minisign.

use super::args::Sign as Args;
use super::exit::{Exit, Failure};
use super::output;
use minisign::{KeyPair, PublicKey, SecretKey, SecretKeyBox};
use palisade::internal::open_regular;
use palisade::sandbox::limits;
use palisade::workspace::LastLink;
use palisade_trust::signature_file;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The remedy without a key.
const GENERATE: &str = "`palisade sign --generate` makes one";
/// The longest file of a key, in bytes.
const MAX_KEY: u64 = 4 << 10;

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let done = match &args.file {
        Some(file) => sign(args, file)?,
        None => generate(args)?,
    };
    output::text(&output::prose(&done))?;
    Ok(Exit::Ok)
}

/// Writes a new pair of keys. An existing file is not replaced.
fn generate(args: &Args) -> Result<String, Failure> {
    let public = public_file(&args.key);
    for file in [&args.key, &public] {
        if file.symlink_metadata().is_ok() {
            return Err(Failure::usage(format!(
                "`{}` exists; name another file with --key",
                file.display()
            )));
        }
    }
    let pair = match args.no_password {
        true => KeyPair::generate_unencrypted_keypair(),
        false => KeyPair::generate_encrypted_keypair(None),
    };
    let pair = pair.map_err(|error| wrong(&args.key, error))?;
    let secret = pair.sk.to_box(None).map_err(|error| wrong(&args.key, error))?;
    let key = pair.pk.to_box().map_err(|error| wrong(&public, error))?;
    write(&args.key, 0o600, &secret.to_string())?;
    write(&public, 0o644, &key.to_string())?;
    Ok(format!(
        "The secret key is in {}: keep it to yourself. The public key is in {}: {}",
        args.key.display(),
        public.display(),
        pair.pk.to_base64()
    ))
}

/// Writes the signature of a file beside it.
fn sign(args: &Args, file: &Path) -> Result<String, Failure> {
    let bytes = read(file, limits::COMPONENT)?;
    if !args.key.exists() {
        return Err(wrong(&args.key, format!("there is no such file; {GENERATE}")));
    }
    let no_key = |_| wrong(&args.key, format!("it is no secret key of minisign; {GENERATE}"));
    let text =
        String::from_utf8(read(&args.key, MAX_KEY)?).map_err(|error| no_key(error.to_string()))?;
    let key = SecretKeyBox::from_string(&text).map_err(|error| no_key(error.to_string()))?;
    let secret = open(key).map_err(|error| wrong(&args.key, error))?;
    let public = PublicKey::from_secret_key(&secret).map_err(|error| wrong(&args.key, error))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let comment = format!("file:{name}\thashed");
    let signature = minisign::sign(Some(&public), &secret, &*bytes, Some(&comment), None)
        .map_err(|error| wrong(file, error))?;
    let beside = signature_file(file);
    replace(&beside, &signature.into_string())?;
    Ok(format!("The signature is in {}. Its key: {}", beside.display(), public.to_base64()))
}

/// Opens a secret key, and asks for its password at the terminal if it has one.
fn open(key: SecretKeyBox) -> minisign::Result<SecretKey> {
    let text = key.to_string();
    match key.into_unencrypted_secret_key() {
        Ok(secret) => Ok(secret),
        Err(_) => SecretKeyBox::from_string(&text)?.into_secret_key(None),
    }
}

/// Returns the file of the public key that belongs to a secret one.
fn public_file(secret: &Path) -> PathBuf {
    match secret.extension() {
        Some(extension) if extension == "key" => secret.with_extension("pub"),
        _ => {
            let mut name = secret.as_os_str().to_owned();
            name.push(".pub");
            PathBuf::from(name)
        }
    }
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let file = open_regular(path, LastLink::Follow).map_err(|error| wrong(path, error))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| wrong(path, error))?;
    match bytes.len() as u64 > most {
        true => Err(wrong(path, format!("it is larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Writes a new file with this mode.
fn write(path: &Path, mode: u32, text: &str) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| wrong(path, error))
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
        fresh.write_all(text.as_bytes())?;
        fresh.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        fresh.persist(path).map(drop).map_err(|error| error.error)
    };
    written().map_err(|error| wrong(path, error))
}

fn wrong(path: &Path, error: impl fmt::Display) -> Failure {
    Failure::usage(format!("cannot sign with or write `{}`: {error}", path.display()))
}
