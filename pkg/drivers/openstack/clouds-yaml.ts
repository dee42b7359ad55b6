import { parseYaml, YamlError } from '../../apis/yaml.ts';
import { type Fields, fields, invalid } from '../spec-fields.ts';

/** The key of a Secret that holds the file which OpenStack's own programs read. */
const FILE = 'clouds.yaml';
/** The key that says which of its clouds is meant. */
const CHOICE = 'cloud';
/** Keys of a Secret by the member of `auth` that says the same. */
const AUTH: Readonly<Record<string, string>> = {
  auth_url: 'authURL',
  username: 'username',
  user_id: 'userID',
  password: 'password',
  project_name: 'tenantName',
  project_id: 'tenantID',
  project_domain_name: 'domainName',
  project_domain_id: 'domainID',
  user_domain_name: 'userDomainName',
  user_domain_id: 'userDomainID',
  domain_name: 'domainName',
  domain_id: 'domainID',
  application_credential_id: 'applicationCredentialID',
  application_credential_name: 'applicationCredentialName',
  application_credential_secret: 'applicationCredentialSecret',
};

/**
 * The keys of a Secret as the driver knows them: what its `clouds.yaml` says stands under them too. Certificates are not read from the paths
 * that such a file names: `cacert`, `clientCert` and `clientKey` are keys of the Secret. Throws InvalidArgument that names the member, and
 * quotes nothing.
 */
export function supportedKeysOf(
  secretData: Readonly<Record<string, Uint8Array>>,
): Readonly<Record<string, Uint8Array>> {
  const { [FILE]: file, cacert, ...others } = secretData;
  const known = cacert === undefined || 'caCert' in others ? others : { ...others, caCert: cacert };
  if (file === undefined) return known;
  const told = keysIn(new TextDecoder().decode(file), textOf(secretData[CHOICE]));
  const twice = Object.keys(told).find((key) => textOf(known[key]) !== '');
  if (twice !== undefined) throw invalid(`secret: ${twice} and ${FILE} are both set, remove one of them`);
  const encoder = new TextEncoder();
  return { ...known, ...Object.fromEntries(Object.entries(told).map(([key, text]) => [key, encoder.encode(text)])) };
}

function keysIn(text: string, choice: string): Readonly<Record<string, string>> {
  const { path, cloud } = cloudIn(text, choice);
  const auth = fields(cloud['auth'] ?? {}, `${path}.auth`);
  const keys: Record<string, string> = {};
  for (const [member, key] of Object.entries(AUTH)) {
    const value = auth[member];
    if (value !== undefined && value !== null) keys[key] ??= scalar(value, `${path}.auth.${member}`);
  }
  if (cloud['interface'] !== undefined) keys['interface'] = scalar(cloud['interface'], `${path}.interface`);
  if (cloud['verify'] === false) keys['insecure'] = 'true';
  return keys;
}

function cloudIn(text: string, choice: string): { readonly path: string; readonly cloud: Fields } {
  const at = `secret: ${FILE}: clouds`;
  const clouds = fields(fields(parsed(text), `secret: ${FILE}`)['clouds'], at);
  const names = Object.keys(clouds);
  const name = choice === '' && names.length === 1 ? names[0] : choice;
  if (name === undefined || name === '')
    throw invalid(`${at}: has ${names.length} clouds, name one of them in key ${CHOICE}`);
  if (!Object.hasOwn(clouds, name)) throw invalid(`${at}: has no cloud of the name in key ${CHOICE}`);
  return { path: `${at}.${name}`, cloud: fields(clouds[name], `${at}.${name}`) };
}

function parsed(text: string): unknown {
  try {
    return parseYaml(text, { mayAlias: false });
  } catch (err) {
    if (err instanceof YamlError) throw invalid(`secret: ${FILE}: ${err.message}`);
    throw err;
  }
}

/** YAML takes a password of digits for a number. */
function scalar(value: unknown, path: string): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw invalid(`${path}: must be a string`);
}

function textOf(value: Uint8Array | undefined): string {
  return new TextDecoder().decode(value ?? new Uint8Array()).trim();
}
