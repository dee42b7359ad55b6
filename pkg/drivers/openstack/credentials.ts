import { invalid } from '../spec-fields.ts';
import { supportedKeysOf } from './clouds-yaml.ts';
import { parseFlag } from './provider-spec.ts';

export interface OpenStackCredentials {
  /** Ends with /v3. */
  readonly authURL: string;
  /** The member `auth` of the request for a token. */
  readonly auth: object;
  readonly tls: {
    readonly ca: string | undefined;
    readonly cert: string | undefined;
    readonly key: string | undefined;
    readonly isInsecure: boolean;
  };
  /** Which addresses of its services the catalog is asked for. */
  readonly interface: Interface;
}

/** Kinds of addresses that a catalog has. */
const INTERFACES = ['public', 'internal', 'admin'] as const;
export type Interface = (typeof INTERFACES)[number];

/** By ID or by name; undefined without either. */
type Reference = { readonly id: string } | { readonly name: string } | undefined;

/** Reads the keys of a Secret as Gardener's provider names them. Throws InvalidArgument that names the key. */
export function parseCredentials(secretData: Readonly<Record<string, Uint8Array>>): OpenStackCredentials {
  const known = supportedKeysOf(secretData);
  const get = (key: string): string | undefined => {
    const value = new TextDecoder().decode(known[key] ?? new Uint8Array()).trim();
    return value === '' ? undefined : value;
  };
  const [cert, key] = [get('clientCert'), get('clientKey')];
  if ((cert === undefined) !== (key === undefined))
    throw invalid('secret: clientCert and clientKey must both be set, or none');
  return {
    authURL: authURLOf(get('authURL')),
    auth: authOf(get),
    tls: { ca: get('caCert'), cert, key, isInsecure: parseFlag(get('insecure') ?? 'false', 'secret: insecure') },
    interface: interfaceOf(get('interface') ?? 'public'),
  };
}

/** The longer words are those of Keystone's first version, which files still have. */
function interfaceOf(text: string): Interface {
  const found = INTERFACES.find((one) => one === text || `${one}URL` === text);
  if (found === undefined) throw invalid(`secret: interface: must be one of ${INTERFACES.join(', ')}`);
  return found;
}

function authURLOf(value: string | undefined): string {
  if (value === undefined) throw invalid('secret: authURL is missing or empty');
  if (!URL.canParse(value) || !/^https?:/.test(value))
    throw invalid('secret: authURL must be a URL, such as https://keystone:5000/v3');
  const url = value.replace(/\/+$/, '');
  return url.endsWith('/v3') ? url : `${url}/v3`;
}

function authOf(get: (key: string) => string | undefined): object {
  const reference = (id: string, name: string): Reference => {
    const [byID, byName] = [get(id), get(name)];
    if (byID !== undefined) return { id: byID };
    return byName === undefined ? undefined : { name: byName };
  };
  const domain = reference('domainID', 'domainName');
  const userID = get('userID');
  const user = { name: get('username'), domain: reference('userDomainID', 'userDomainName') ?? domain };
  const password = get('password');
  const secret = get('applicationCredentialSecret');
  if (password !== undefined && secret !== undefined)
    throw invalid('secret: password and applicationCredentialSecret are both set, remove one of them');
  if (secret !== undefined)
    return credentialAuth(reference('applicationCredentialID', 'applicationCredentialName'), { userID, user }, secret);
  if (user.name === undefined && userID === undefined)
    throw invalid('secret: username is missing or empty, and there is no applicationCredentialSecret');
  if (password === undefined)
    throw invalid('secret: password is missing or empty, and there is no applicationCredentialSecret');
  if (user.domain === undefined && userID === undefined)
    throw invalid('secret: domainName is missing or empty, and so are domainID, userDomainName and userDomainID');
  const project = reference('tenantID', 'tenantName');
  if (project === undefined) throw invalid('secret: tenantName is missing or empty, and so is tenantID');
  if ('name' in project && domain === undefined)
    throw invalid('secret: domainName is missing or empty, and so is domainID: tenantName is a name in it');
  return {
    identity: {
      methods: ['password'],
      password: { user: { ...(userID === undefined ? user : { id: userID }), password } },
    },
    scope: { project: 'id' in project ? project : { ...project, domain } },
  };
}

/** An application credential is of one project; a name is one of its user's. */
function credentialAuth(
  credential: Reference,
  { userID, user }: { userID: string | undefined; user: { name: string | undefined; domain: Reference } },
  secret: string,
): object {
  if (credential === undefined)
    throw invalid('secret: applicationCredentialID is missing or empty, and so is applicationCredentialName');
  const isKnown = userID !== undefined || (user.name !== undefined && user.domain !== undefined);
  if ('name' in credential && !isKnown)
    throw invalid(
      'secret: applicationCredentialName needs username and the domain of the user, or use applicationCredentialID',
    );
  const application = {
    ...credential,
    secret,
    ...('name' in credential ? { user: userID === undefined ? user : { id: userID } } : {}),
  };
  return { identity: { methods: ['application_credential'], application_credential: application } };
}
