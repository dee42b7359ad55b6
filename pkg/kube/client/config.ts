import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import nodeModule from 'node:module';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import type { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { Cluster } from '@kubernetes/client-node/dist/config_types.js';

import { parseYaml } from '../../apis/yaml.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { ConfigError } from './config-error.ts';
import { type ClusterInfo, CredentialPlugin, type PluginSpec } from './credential-plugin.ts';
import {
  type ConnectionSettings,
  type Credentials,
  type Endpoint,
  type LoadCredentials,
  type LoadResult,
  RefreshingEndpoint,
} from './endpoint.ts';
import { isGeneratedClients, NO_GENERATED_CLIENTS } from './generated-clients.ts';

/** The flag value that names the service account of the pod. */
const IN_CLUSTER = 'inClusterConfig';

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface EndpointSource {
  /** A path; '' for the service account of the pod, else the default kubeconfig; `inClusterConfig` for the service account. */
  readonly kubeconfig: string;
  /** Instead of its current context; '' for that. A pod's service account has none. */
  readonly context?: string;
  readonly clock: Clock;
  /** KUBERNETES_SERVICE_HOST and _PORT, KUBECONFIG and HOME are read from it; credential plugins get all of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Somebody sits at the terminal: a credential plugin may ask them, and has a minute. */
  readonly isInteractive?: boolean;
  /** Called when a credential plugin is started, with the program's name. */
  readonly onPlugin?: ((program: string) => void) | undefined;
  /** Told of each load of credentials; must not throw. */
  readonly onLoad?: ((result: LoadResult) => void) | undefined;
  /** Told that the server may be another one than at first, which is then not used; undefined: it is used. Must not throw. */
  readonly moved?: (() => void) | undefined;
  readonly serviceAccount?: string;
}

/** For a credential plugin that asks somebody. */
const INTERACTIVE_WITHIN_MS = 60_000;

/**
 * The API server that a kubeconfig flag means, with client-go's semantics. Tokens, certificates and the kubeconfig itself, with its server,
 * are re-read when they are older than a minute or were refused. Where somebody sits at the terminal, they are loaded here: a request would not
 * wait for as long as they may take. Throws ConfigError.
 */
export async function loadEndpoint(source: EndpointSource): Promise<Endpoint> {
  const { clock, env, isInteractive = false, onLoad, onPlugin, moved } = source;
  const endpoint = await endpointOf(describe(source), () => loadConfig(source), {
    clock,
    plugin: new CredentialPlugin({ clock, env, isInteractive, onRun: onPlugin }),
    mayChange: true,
    place: placeOf(source),
    onLoad,
    moved,
    ...(isInteractive ? { loadWithinMs: INTERACTIVE_WITHIN_MS } : {}),
  });
  if (isInteractive) await endpoint.credentials();
  return endpoint;
}

/** The contexts of a kubeconfig. Throws ConfigError. */
export async function contextNames(source: EndpointSource): Promise<readonly string[]> {
  return (await loadConfig(source)).getContexts().map(({ name }) => name);
}

/** The context that is used, and the server that it leads to. Throws ConfigError. */
export async function currentContext(
  source: EndpointSource,
): Promise<{ readonly name: string; readonly server: string }> {
  const config = await loadConfig(source);
  return { name: config.getCurrentContext(), server: serverOf(config, describe(source)) };
}

/** A kubeconfig that somebody else has written, such as one of a Secret. */
export interface ForeignKubeconfig {
  /** A function is asked for what it is now at each load, and may throw ConfigError. */
  readonly content: ForeignContent | (() => Promise<ForeignContent>);
  readonly clock: Clock;
  /** Told that it names another server than at first, which is not used. Must not throw. */
  readonly moved?: (() => void) | undefined;
}

/** What a kubeconfig of a foreign hand is at a moment. */
export interface ForeignContent {
  /** YAML or JSON. */
  readonly kubeconfig: string;
  /** In place of a `tokenFile` that it names, which is no file of this host. */
  readonly token?: string | undefined;
  /** Of the control cluster, where it is: a host name without a dot is that of a Service in it, as it is to a Pod there. */
  readonly namespace?: string | undefined;
}

/**
 * The API server that a kubeconfig of a foreign hand means. It must bring its credentials along: none that run a program of this
 * host or read its files. The server must prove by TLS who it is, also behind a proxy. Throws ConfigError, whose message names the member and
 * quotes nothing.
 */
export async function foreignEndpoint({ content, clock, moved }: ForeignKubeconfig): Promise<Endpoint> {
  // It is asked for each minute, by each of hundreds of clusters.
  let last: { readonly content: ForeignContent; readonly config: KubeConfig } | undefined;
  const read = async (): Promise<KubeConfig> => {
    const present = typeof content === 'function' ? await content() : content;
    if (last === undefined || !isDeepStrictEqual(last.content, present))
      last = { content: present, config: await fromForeignHand(present) };
    return last.config;
  };
  return await endpointOf('the kubeconfig', read, { clock, mayChange: typeof content === 'function', moved });
}

interface LoadOptions {
  readonly clock: Clock;
  /** Runs the program that a user may name; undefined: none may. */
  readonly plugin?: CredentialPlugin;
  /** It is read for each load. */
  readonly mayChange: boolean;
  readonly moved?: (() => void) | undefined;
  /** Where it is, for messages. */
  readonly place?: string;
  readonly loadWithinMs?: number;
  readonly onLoad?: ((result: LoadResult) => void) | undefined;
}

/** What decides which server is reached: also by another proxy, or under another name, it may be another one. */
function wayOf(config: KubeConfig, server: string): string {
  const { proxyUrl, tlsServerName } = config.getCurrentCluster() ?? {};
  const { origin, pathname, search } = new URL(server);
  const proxy = URL.parse(proxyUrl ?? '');
  // Without the password that it may have.
  const by = proxy === null ? proxyUrl : `${proxy.protocol}//${proxy.host}`;
  return JSON.stringify([origin, pathname.replace(/\/+$/, ''), search, by, tlsServerName]);
}

/** Whether those who vouch for a server have one in common, as while its CA is rotated; else it may be another server. */
function shareAuthority(before: string | undefined, now: string | undefined): boolean {
  const known = authoritiesIn(before);
  const present = authoritiesIn(now);
  return present.length === 0 ? known.length === 0 : present.some((one) => known.includes(one));
}

function authoritiesIn(ca = ''): readonly string[] {
  const found = ca.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g) ?? (ca.trim() === '' ? [] : [ca]);
  return found.map((one) => one.replaceAll(/\s/g, ''));
}

async function endpointOf(what: string, read: () => Promise<KubeConfig>, options: LoadOptions): Promise<Endpoint> {
  const { plugin, mayChange, moved, place = what, ...loading } = options;
  let config = await read();
  // As it was read: client-node writes what it renews into it.
  let text = config.exportConfig();
  const url = serverOf(config, what);
  const way = wayOf(config, url);
  let vouching: { readonly ca: string | undefined } | undefined;

  const refuseMoved = (isSame: boolean): void => {
    if (moved === undefined || isSame) return;
    moved();
    throw new ConfigError(`${what} names another server now, or another way to it`);
  };
  const load: LoadCredentials = async ({ refresh, signal }) => {
    if (refresh || mayChange) {
      const present = await read();
      // What client-node has renewed is lost with the former one.
      const isOther = present !== config && (refresh || present.exportConfig() !== text);
      if (isOther) [config, text] = [present, present.exportConfig()];
    }
    const server = serverOf(config, what);
    refuseMoved(wayOf(config, server) === way);
    let loaded: Credentials;
    try {
      loaded = await credentialsOf(config, plugin, { refresh, signal });
    } catch (err) {
      throw new ConfigError(`getting the credentials of ${what}: ${whatIsWrong(err)}`);
    }
    const { ca } = loaded.connection.tls;
    refuseMoved(vouching === undefined || shareAuthority(vouching.ca, ca));
    vouching = { ca };
    return { ...loaded, url: server };
  };
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace;
  // Arguments and variables of a plugin may hold secrets.
  const source = (): string => {
    const command = commandOf(config);
    return command === undefined ? place : `${place}, credential plugin ${command}`;
  };
  return new RefreshingEndpoint({ url, way, namespace, load, source, ...loading });
}

/** Throws ConfigError. */
function serverOf(config: KubeConfig, what: string): string {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw noCluster(what);
  if (isServerURL(cluster.server)) return cluster.server;
  throw new ConfigError(`reading the server of ${what}: must be an address such as https://HOST:PORT`);
}

function noCluster(what: string): ConfigError {
  return new ConfigError(
    `the current context of ${what} refers to a cluster that it does not define; set current-context to a context with an existing cluster`,
  );
}

/** Whatever stands there may hold a password, so that it is not quoted when it is wrong. */
function isServerURL(text: unknown): boolean {
  return typeof text === 'string' && /^https?:\/\//i.test(text) && URL.canParse(text);
}

async function loadConfig(source: EndpointSource): Promise<KubeConfig> {
  const Config = await kubeConfigClass();
  try {
    if (source.kubeconfig === IN_CLUSTER) return await inCluster(new Config(), source);
    if (source.kubeconfig !== '') return inContext(await fromFile(new Config(), source.kubeconfig), source);
    if (isInCluster(source)) return await inCluster(new Config(), source);

    const [first, ...more] = defaultFiles(source);
    if (first === undefined) throw new ConfigError('no service account and no kubeconfig found');
    const config = await fromFile(new Config(), first);
    for (const file of more) config.mergeConfig(await fromFile(new Config(), file), true);
    return inContext(config, source);
  } catch (err) {
    if (isNoneThere(source, err)) {
      const remedy = source.isInteractive === true ? '; use --kubeconfig' : ', and no flag names a kubeconfig';
      throw new ConfigError(`KUBECONFIG is not set and ~/.kube/config does not exist${remedy}`);
    }
    throw new ConfigError(`reading ${describe(source)}: ${whatIsWrong(err)}`);
  }
}

/** Whether no kubeconfig was named, and there is none. */
function isNoneThere({ kubeconfig, env }: EndpointSource, err: unknown): boolean {
  const isMissing = (err as Partial<NodeJS.ErrnoException>).code === 'ENOENT'; // whatever was thrown
  return kubeconfig === '' && !env['KUBECONFIG'] && isMissing;
}

/** Longest part of what a credential plugin says that goes into a message. */
const EXCERPT = 300;

/**
 * What may be told of an error, which is then not kept as a cause: a parser quotes what it could not read, and that may be a
 * token.
 */
function whatIsWrong(err: unknown): string {
  const { name, message } = err as Partial<Error>; // looked at one by one, whatever was thrown
  return name === 'SyntaxError' ? 'the file is not valid JSON' : String(message ?? err).slice(0, EXCERPT);
}

function describe({ kubeconfig }: EndpointSource): string {
  if (kubeconfig === IN_CLUSTER) return "the pod's service account";
  return kubeconfig === '' ? 'the default client configuration' : `kubeconfig ${kubeconfig}`;
}

/** The same with the files that the default client configuration consists of. */
function placeOf(source: EndpointSource): string {
  const isDefault = source.kubeconfig === '' && !isInCluster(source);
  return isDefault ? `kubeconfig ${defaultFiles(source).join(', ')}` : describe(source);
}

/** Throws ConfigError for a context that is not there. */
function inContext(config: KubeConfig, { context = '' }: EndpointSource): KubeConfig {
  if (context === '') return config;
  if (config.getContextObject(context) === null) throw new ConfigError(`context "${context}" does not exist`);
  config.setCurrentContext(context);
  return config;
}

/** Who names a context means a kubeconfig. */
function isInCluster({ env, context = '' }: EndpointSource): boolean {
  if (context !== '') return false;
  return Boolean(env['KUBERNETES_SERVICE_HOST']) && Boolean(env['KUBERNETES_SERVICE_PORT']);
}

function defaultFiles({ env }: EndpointSource): string[] {
  if (env['KUBECONFIG']) return env['KUBECONFIG'].split(path.delimiter).filter((file) => file !== '');
  return env['HOME'] ? [path.join(env['HOME'], '.kube', 'config')] : [];
}

async function inCluster(config: KubeConfig, source: EndpointSource): Promise<KubeConfig> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = source.env;
  if (!host || !port) throw new ConfigError('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
  const folder = source.serviceAccount ?? SERVICE_ACCOUNT;
  const tokenFile = path.join(folder, 'token');
  await readFile(tokenFile);
  const namespace = await readFile(path.join(folder, 'namespace'), 'utf8').catch(() => '');

  config.loadFromOptions({
    clusters: [
      {
        name: 'cluster',
        server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
        caFile: path.join(folder, 'ca.crt'),
        skipTLSVerify: false,
      },
    ],
    users: [{ name: 'user', authProvider: { name: 'tokenFile', config: { tokenFile } } }],
    contexts: [{ name: 'context', cluster: 'cluster', user: 'user', namespace: namespace.trim() }],
    currentContext: 'context',
  });
  return config;
}

/** The parts of a kubeconfig that client-node does not know, or that are looked at before it does. */
interface RawKubeconfig {
  clusters?: {
    cluster?: {
      server?: unknown;
      'insecure-skip-tls-verify'?: unknown;
      'tls-server-name'?: unknown;
      'proxy-url'?: unknown;
    };
  }[];
  users?: { user?: { tokenFile?: string; token?: string; 'auth-provider'?: unknown } }[];
}

/** What makes this host read a file or run a program, also under names that only client-node knows. */
const OF_THIS_HOST = {
  cluster: ['certificate-authority'],
  user: ['client-certificate', 'client-key', 'tokenFile', 'token-file', 'exec', 'auth-provider'],
} as const;

/** What is taken of a foreign hand; whatever else a library may come to read is left out. */
const TAKEN = {
  cluster:
    'server certificate-authority-data tls-server-name proxy-url insecure-skip-tls-verify disable-compression extensions',
  user: 'token client-certificate-data client-key-data username password as as-uid as-groups as-user-extra extensions',
};

async function fromForeignHand({ kubeconfig, token, namespace }: ForeignContent): Promise<KubeConfig> {
  const config = new (await kubeConfigClass())();
  try {
    const raw: unknown = parseYaml(kubeconfig, { mayAlias: false });
    if (typeof raw !== 'object' || raw === null) throw new ConfigError('it is no object');
    const { clusters = [], users = [] } = raw as RawKubeconfig;
    for (const { cluster } of clusters) {
      takeMembers(cluster, 'cluster');
      refuseUnverified(cluster);
      if (cluster !== undefined && namespace !== undefined) lookUpIn(namespace, cluster);
    }
    for (const { user } of users) {
      if (user !== undefined && token !== undefined) takeToken(user, token);
      takeMembers(user, 'user');
    }
    config.loadFromString(JSON.stringify(raw));
    return config;
  } catch (err) {
    throw new ConfigError(`reading the kubeconfig: ${whatIsWrong(err)}`);
  }
}

/**
 * Host names without a dot would be looked up in the namespace of this process. The server still has to prove to be the one that is named.
 * What a proxy is asked for, it looks up itself.
 */
function lookUpIn(
  namespace: string,
  cluster: NonNullable<NonNullable<RawKubeconfig['clusters']>[number]['cluster']>,
): void {
  const { server, 'proxy-url': proxy } = cluster;
  if (typeof proxy === 'string' && proxy !== '') {
    cluster['proxy-url'] = inNamespace(proxy, namespace)?.url ?? proxy;
    return;
  }
  const found = inNamespace(server, namespace);
  if (found === undefined) return;
  cluster.server = found.url;
  cluster['tls-server-name'] ||= found.name;
}

/** The URL of a Service that a URL names without its namespace; undefined: it names none. */
function inNamespace(text: unknown, namespace: string): { readonly url: string; readonly name: string } | undefined {
  const url = typeof text === 'string' ? URL.parse(text.trim()) : null;
  if (url === null || !/^[a-z0-9-]+$/i.test(url.hostname) || url.hostname === 'localhost') return undefined;
  const name = url.hostname;
  url.hostname = `${name}.${namespace}.svc`;
  return { url: url.href.replace(/\/$/, ''), name };
}

/** Kubeconfigs of Gardener name a file into which the token of another Secret is projected. */
function takeToken(user: { tokenFile?: string; token?: string }, token: string): void {
  if (user.tokenFile === undefined) return;
  delete user.tokenFile;
  user.token = token;
}

function takeMembers(of: unknown, what: 'cluster' | 'user'): void {
  if (of === undefined || of === null) return;
  if (typeof of !== 'object' || Array.isArray(of)) throw new ConfigError(`a ${what} is no object`);
  const taken = TAKEN[what].split(' ');
  for (const member of Object.keys(of)) {
    if ((OF_THIS_HOST[what] as readonly string[]).includes(member)) {
      throw new ConfigError(
        `${member} is not allowed, because it names a file or a program; put the credentials into the kubeconfig`,
      );
    }
    if (!taken.includes(member)) Reflect.deleteProperty(of, member);
  }
}

/** Whoever stands in between would get the credentials, and be believed that VMs are gone. A proxy sees neither. */
function refuseUnverified(cluster: NonNullable<RawKubeconfig['clusters']>[number]['cluster']): void {
  const { server, 'insecure-skip-tls-verify': isSkipped } = cluster ?? {};
  if (isSkipped !== undefined && isSkipped !== false) {
    throw new ConfigError('insecure-skip-tls-verify is not allowed; set the CA of the server instead');
  }
  if (typeof server === 'string' && /^http:/i.test(server.trim())) {
    throw new ConfigError('a server without TLS is not allowed; use an https:// address');
  }
}

async function fromFile(config: KubeConfig, file: string): Promise<KubeConfig> {
  const raw = (parseYaml(await readFile(file, 'utf8')) ?? {}) as RawKubeconfig;
  const folder = path.dirname(path.resolve(file));
  for (const { user } of raw.users ?? []) {
    // client-node ignores `tokenFile`, which Gardener's kubeconfigs rely on; as in client-go it wins over `token`.
    if (user?.tokenFile === undefined) continue;
    delete user.token;
    user['auth-provider'] = { name: 'tokenFile', config: { tokenFile: path.resolve(folder, user.tokenFile) } };
  }
  config.loadFromString(JSON.stringify(raw));
  config.makePathsAbsolute(folder);
  return config;
}

async function credentialsOf(
  config: KubeConfig,
  plugin: CredentialPlugin | undefined,
  how: { readonly refresh: boolean; readonly signal: AbortSignal },
): Promise<Credentials> {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw noCluster('the kubeconfig');
  // client-node refuses plain HTTP (a local `kubectl proxy`) unless TLS checks are off, which mean nothing there.
  if (cluster.server.startsWith('http:')) config.clusters = config.clusters.map((c) => ({ ...c, skipTLSVerify: true }));

  const options: RequestOptions = {};
  let token: string | undefined;
  const own = ownProviderOf(config);
  await (own === undefined ? config : withoutProvider(config)).applyToHTTPSOptions(options);
  if (own?.tokenFile !== undefined) token = await readFile(own.tokenFile, 'utf8');
  if (own?.exec !== undefined) {
    if (plugin === undefined) throw new Error('it names a program');
    const printed = await plugin.credential(own.exec, { ...how, cluster: infoOf(cluster) });
    if (printed.clientCertificateData !== undefined) options.cert = printed.clientCertificateData;
    if (printed.clientKeyData !== undefined) options.key = printed.clientKeyData;
    token = printed.token;
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = String(value).trim();
  // As with kubectl a token that stands in the kubeconfig comes first.
  if (token !== undefined) headers['Authorization'] ??= `Bearer ${token.trim()}`;
  if (options.auth) headers['Authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { headers, connection: connectionOf(cluster.proxyUrl, options) };
}

/** What is loaded here: a program is killed when it hangs, and client-node would keep a file's token for a minute of its own. */
interface OwnProvider {
  readonly tokenFile?: string | undefined;
  readonly exec?: PluginSpec | undefined;
}

/** Whether that is how the current user proves who it is. */
function ownProviderOf(config: KubeConfig): OwnProvider | undefined {
  const { exec, authProvider } = config.getCurrentUser() ?? {};
  const provided = (authProvider as { config?: OwnProvider } | undefined)?.config; // as it stands in a file
  const spec = (exec ?? provided?.exec) as PluginSpec | null | undefined; // the same
  if (spec && !spec.command) throw new Error('exec has no command');
  if (spec) return { exec: spec };
  return provided?.tokenFile === undefined ? undefined : { tokenFile: provided.tokenFile };
}

/** The program that the current user's credentials come from. */
function commandOf(config: KubeConfig): string | undefined {
  try {
    return ownProviderOf(config)?.exec?.command;
  } catch {
    return undefined;
  }
}

function withoutProvider(config: KubeConfig): KubeConfig {
  const users = config.users.map(({ exec: _exec, authProvider: _provider, ...user }) => user);
  return Object.assign(Object.create(config) as KubeConfig, { users });
}

/** What a plugin is told of the cluster, in the words of client.authentication.k8s.io. */
function infoOf({ server, caData, tlsServerName, skipTLSVerify, proxyUrl }: Cluster): ClusterInfo {
  return {
    server,
    'certificate-authority-data': caData,
    'tls-server-name': tlsServerName,
    'insecure-skip-tls-verify': skipTLSVerify || undefined,
    'proxy-url': proxyUrl,
  };
}

function connectionOf(proxyUrl: string | undefined, options: RequestOptions): ConnectionSettings {
  const { ca, cert, key, passphrase, rejectUnauthorized, servername } = options;
  const tls = {
    ...(ca === undefined ? {} : { ca: pem(ca) }),
    ...(cert === undefined ? {} : { cert: pem(cert) }),
    ...(key === undefined ? {} : { key: pem(key) }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
  };
  if (!proxyUrl) return { tls };
  return { proxy: { kind: proxyUrl.startsWith('socks') ? 'socks' : 'http', url: proxyUrl }, tls };
}

/** client-node fills TLS members with PEM in a Buffer or a string, never with the other forms that the type allows. */
function pem(material: unknown): string {
  return Buffer.isBuffer(material) ? material.toString('utf8') : (material as string);
}

/**
 * client-node's KubeConfig without its generated clients and models. They cost 42 MB (127 MB against 85 MB with undici)
 * and serve only `makeApiClient`, which is never called here.
 */
async function kubeConfigClass(): Promise<typeof KubeConfig> {
  const hooks = leaveOutGeneratedClients();
  try {
    const module = await import('@kubernetes/client-node/dist/config.js');
    return module.KubeConfig;
  } finally {
    hooks?.deregister();
  }
}

/** Undefined where module hooks are not to be had (Jest refuses them): everything is loaded then, at the price of memory. */
function leaveOutGeneratedClients(): ReturnType<typeof nodeModule.registerHooks> | undefined {
  try {
    return nodeModule.registerHooks({
      resolve(specifier, context, nextResolve) {
        if (!isGeneratedClients(specifier, context.parentURL)) return nextResolve(specifier, context);
        const url = `data:text/javascript,${encodeURIComponent(NO_GENERATED_CLIENTS)}`;
        return { url, format: 'module', shortCircuit: true };
      },
    });
  } catch {
    return undefined;
  }
}
