/** Files of mutual TLS: who signs the other side, and who we are. */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Name that the server's certificate must carry, when it is not the host of the address. */
  readonly serverName?: string;
}

export interface DriverAddress {
  /** What gRPC connects to: `unix:///path` or `dns:///host:port`. */
  readonly target: string;
  /** Path of the socket; undefined for TCP. */
  readonly path: string | undefined;
  /** Host and port; undefined for a socket. */
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** Undefined for a socket, and for loopback without TLS. */
  readonly tls: TlsFiles | undefined;
  /** Says that every process of this host may be trusted: see requireProtected. */
  readonly insecure: boolean;
}

/** An address that is malformed, or that would carry secrets in plain text over a network. */
export class DriverAddressError extends Error {
  override readonly name = 'DriverAddressError';
}

const TLS_PARAMETERS = ['ca', 'cert', 'key', 'serverName'];

/**
 * Parses `unix:///path`, `dns:///host:port?ca=FILE&cert=FILE&key=FILE[&serverName=NAME]` or, for loopback,
 * `dns:///host:port[?insecure=true]`. Requests carry credentials, so TCP without the three files is refused unless the host is
 * loopback. Throws DriverAddressError.
 */
export function parseDriverAddress(text: string): DriverAddress {
  if (text.startsWith('unix:')) return parseSocket(text);
  if (text.startsWith('dns:')) return parseTcp(text);
  throw new DriverAddressError(`driver address ${text}: must start with unix:/// or dns:///`);
}

/** Whether both sides know each other: by the owner of a socket, or by their certificates. */
export function isProtected({ path, tls }: DriverAddress): boolean {
  return path !== undefined || tls !== undefined;
}

/**
 * Throws DriverAddressError for plain TCP that is not asked for by `insecure=true`: any user of the host who connects to a
 * driver commands its provider, with the driver's rights.
 */
export function requireProtected(address: DriverAddress): void {
  if (isProtected(address) || address.insecure) return;
  throw new DriverAddressError(
    `driver address ${address.target}: any user of this host could call the driver; serve it on unix:///path/to/socket, ` +
      'with ?ca=FILE&cert=FILE&key=FILE, or, if all processes of the host are trusted (such as in a pod), with ?insecure=true',
  );
}

/** True for names and addresses that never leave this host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function parseSocket(text: string): DriverAddress {
  const path = text.slice('unix://'.length);
  // Three slashes, or gRPC takes the path for a host and appends a port.
  if (!text.startsWith('unix:///') || path.length < 2) {
    throw new DriverAddressError(`driver address ${text}: a socket must be unix:///absolute/path`);
  }
  return { target: text, path, host: undefined, port: undefined, tls: undefined, insecure: false };
}

function parseTcp(text: string): DriverAddress {
  const question = text.indexOf('?');
  const target = question === -1 ? text : text.slice(0, question);
  const match = /^dns:\/\/\/(?:\[([0-9a-fA-F:]+)\]|([^:/[\]]+)):(\d{1,5})$/.exec(target);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) {
    throw new DriverAddressError(`driver address ${text}: TCP must be dns:///host:port`);
  }
  const parameters = new URLSearchParams(question === -1 ? '' : text.slice(question + 1));
  const insecure = parameters.size === 1 && parameters.get('insecure') === 'true';
  const tls = question === -1 || insecure ? undefined : parseTls(text, parameters);
  if (tls === undefined && !isLoopback(host)) {
    throw new DriverAddressError(
      `driver address ${text}: requests carry credentials; except on loopback, it requires ?ca=FILE&cert=FILE&key=FILE`,
    );
  }
  return { target, path: undefined, host, port, tls, insecure };
}

function parseTls(text: string, parameters: URLSearchParams): TlsFiles {
  const unknown = [...parameters.keys()].find((name) => !TLS_PARAMETERS.includes(name));
  if (unknown !== undefined) throw new DriverAddressError(`driver address ${text}: unknown parameter ${unknown}`);

  const file = (name: string): string => {
    const value = parameters.get(name);
    if (value === null || value === '') throw new DriverAddressError(`driver address ${text}: ${name} is missing`);
    return value;
  };
  const files = { ca: file('ca'), cert: file('cert'), key: file('key') };
  const serverName = parameters.get('serverName');
  return serverName === null ? files : { ...files, serverName };
}
