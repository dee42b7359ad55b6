import type { KubeObject } from '../../pkg/apis/meta.ts';
import { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import type { IndexFunctions } from '../../pkg/kube/cache/store.ts';
import { ServerTime } from '../../pkg/base/clock/server-time.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { CONTROL, type Gate } from '../../pkg/kube/gate/gate.ts';
import type { New, Reader } from '../../pkg/kube/client/client.ts';
import { loadEndpoint } from '../../pkg/kube/client/config.ts';
import type { Endpoint } from '../../pkg/kube/client/endpoint.ts';
import { ConfigError } from '../../pkg/kube/client/config-error.ts';
import { ApiError, isConflict, isNotFound } from '../../pkg/kube/client/errors.ts';
import { GatedWriter } from '../../pkg/kube/client/gated-writer.ts';
import { HttpReader } from '../../pkg/kube/client/http-reader.ts';
import { HttpListWatch, type ListWatch, type Selection } from '../../pkg/kube/client/list-watch.ts';
import { type MergePatch, mergePatchIfUnchanged } from '../../pkg/kube/client/patch.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { type RequestRecord, Transport } from '../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { CommandError } from './command-error.ts';
import { didYouMean } from './did-you-mean.ts';
import type { ClusterOptions } from './options.ts';
import type { PrintLine } from './terminal.ts';
import { version } from './version.ts';
import { WaitNotice } from './wait-notice.ts';

/** Where the command finds its cluster. */
export interface Access extends ClusterOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command, for the server's logs. */
  readonly command: string;
  /** Where it says that it waits for the server; without it, it says nothing. */
  readonly err?: PrintLine | undefined;
}

/** What an informer of a command may have besides. */
export interface InformerExtras<T extends KubeObject> {
  readonly indexes?: IndexFunctions<T> | undefined;
  readonly watched?: (source: ListWatch<T>) => ListWatch<T>;
}

/** A person at a terminal holds no Lease: every write passes. */
const OPEN: Gate = { admit: () => Promise.resolve({ remainingMs: Infinity, fencingToken: 0n }) };
/** How often a write is tried again that met a change of somebody else. */
const TRIES = 5;

/** The objects of one namespace, for one command of a person. */
export class CommandCluster implements AsyncDisposable {
  /** What the command is about, unless it asks for more. */
  readonly namespace: string;
  readonly reader: Reader;
  readonly transport: Transport;
  readonly #clock: SystemClock;
  readonly #writer: GatedWriter;
  /** Of the first answer of the server. */
  readonly #notice: WaitNotice;

  readonly #endpoint: Pick<Endpoint, 'url'>;

  private constructor(
    namespace: string,
    endpoint: Pick<Endpoint, 'url'>,
    transport: Transport,
    clock: SystemClock,
    notice: WaitNotice,
  ) {
    this.namespace = namespace;
    this.#endpoint = endpoint;
    this.transport = transport;
    this.#clock = clock;
    this.#notice = notice;
    this.reader = new HttpReader(transport);
    this.#writer = new GatedWriter({ transport, gate: OPEN, cluster: CONTROL });
  }

  /** Reads the kubeconfig; asks nothing of the server yet. Throws CommandError. */
  static async open(access: Access): Promise<CommandCluster> {
    const { kubeconfig = '', context = '', namespace = '', requestTimeout = 0, env, command } = access;
    const clock = new SystemClock();
    const notice = new WaitNotice(access.err);
    const onPlugin = (program: string): void => notice.begin(`credential plugin ${program}`);
    const source = { kubeconfig, context, env, clock, isInteractive: true, onPlugin };
    const endpoint = await loadEndpoint(source).catch((err: unknown) => {
      notice.end();
      throw err instanceof ConfigError ? new CommandError(err.message, { cause: err }) : err;
    });
    notice.begin(`an answer from ${endpoint.url}`);
    const userAgent = `machinist/${version()} ${command}`;
    const timeoutMs = requestTimeout === 0 ? undefined : requestTimeout;
    // Ages and deadlines are counted from what the server and its clients have written: a host whose clock is wrong must not judge them.
    const serverTime = new ServerTime({ clock, confirmations: 1 });
    const onRequest = (record: RequestRecord): void => {
      notice.end();
      // What a proxied pod has answered has the time of that pod.
      if (!record.resource.endsWith('/proxy')) serverTime.observe(record);
    };
    const transport = new Transport({ endpoint, clock, userAgent, timeoutMs, onRequest });
    const own = endpoint.namespace ?? '';
    return new CommandCluster(namespace || own || 'default', endpoint, transport, clock, notice);
  }

  /** Host and port of the API server. */
  get server(): string {
    return new URL(this.#endpoint.url).host;
  }

  /** The time of the server as of its last answer, in milliseconds since the epoch; that of this host before it, or if they differ by less than 5 s. */
  now(): number {
    return this.#clock.now();
  }

  /** Rejects with the signal's reason when it is aborted before the time is over. */
  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(ms, signal);
  }

  /** An object as it is now. Throws ApiError, which suggests names when there is no such object. */
  async get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T> {
    try {
      return await this.reader.get(resource, { namespace: this.namespace, name });
    } catch (err) {
      throw isNotFound(err) ? await this.withSuggestion(err, resource, name) : err;
    }
  }

  /** The error that an object does not exist, with the names in the namespace that are like its own. */
  async withSuggestion<T extends KubeObject>(
    missing: ApiError,
    resource: Resource<T>,
    name: string,
  ): Promise<ApiError> {
    const where = resource.namespaced ? { namespace: this.namespace } : {};
    // Without a permission to list, nothing is suggested.
    const found = await this.reader.list(resource, { ...where, metadataOnly: true }).catch(() => undefined);
    const names = found?.items.map(({ metadata }) => metadata.name) ?? [];
    const message = `${missing.status?.message ?? missing.message}${didYouMean(name, names)}`;
    return new ApiError(missing.code, missing.reason, message, { cause: missing });
  }

  /** All objects of a kind in the namespace, or those that a selector of labels selects. */
  async list<T extends KubeObject>(resource: Resource<T>, labelSelector?: string): Promise<readonly T[]> {
    const selection = labelSelector === undefined ? {} : { labelSelector };
    return (await this.reader.list(resource, { namespace: this.namespace, ...selection })).items;
  }

  /**
   * Changes an object as `decide` says of what it is now; undefined leaves it alone. Another writer's change in between makes
   * `decide` be asked again.
   */
  async change<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    decide: (object: T) => Promise<MergePatch<T> | undefined> | MergePatch<T> | undefined,
  ): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      const object = await this.get(resource, name);
      const change = await decide(object);
      if (change === undefined) return false;
      try {
        const ref = { namespace: this.namespace, name };
        await this.#writer.patch(
          'change',
          resource,
          ref,
          mergePatchIfUnchanged(object, change as MergePatch<NoInfer<T>>),
        );
        return true;
      } catch (err) {
        if (!isConflict(err) || tries === TRIES) throw err;
      }
    }
  }

  /** POST of an object, with its own namespace. Throws ApiError. */
  async create<T extends KubeObject>(resource: Resource<T>, object: New<T>): Promise<T> {
    return await this.#writer.create('create', resource, object);
  }

  /** DELETE of exactly this object; `asSeen`: only if it has not changed since it was read. Throws ApiError. */
  async remove<T extends KubeObject>(
    resource: Resource<T>,
    { metadata: { name, uid, resourceVersion } }: T,
    { namespace = this.namespace, asSeen = false }: { readonly namespace?: string; readonly asSeen?: boolean } = {},
  ): Promise<void> {
    const preconditions = asSeen ? { uid, resourceVersion } : { uid };
    await this.#writer.delete('destroy', resource, { namespace, name }, preconditions);
  }

  /**
   * Shows every state of an object until `look` says that it has seen enough. Rejects with what `look` throws, when the object is
   * deleted, and after `timeoutMs` (0 waits forever), with what `late` adds. Outages of the server are waited for. `gone`: which object is
   * meant, and what is asked instead when it is deleted.
   */
  async follow<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    look: (object: T) => boolean,
    timeoutMs: number,
    gone?: { readonly uid: string; readonly check: () => boolean },
    late?: () => string,
  ): Promise<void> {
    const uid = gone?.uid ?? (await this.get(resource, name)).metadata.uid;
    const lookAt = (object: T | undefined): boolean => {
      if (object?.metadata.uid === uid) return look(object);
      if (gone === undefined) throw new CommandError('object has been deleted');
      return gone.check();
    };

    const done = Promise.withResolvers<void>();
    const ended = new AbortController();
    const informer = this.informer(resource, { namespace: this.namespace, fieldSelector: `metadata.name=${name}` });
    const show = (current: T | undefined): void => {
      try {
        if (lookAt(current)) done.resolve();
      } catch (err) {
        done.reject(err);
      }
    };
    informer.onChange((_old, current) => show(current));
    // One that was gone before the first list is no change.
    const first = informer.waitForSync(ended.signal).then(
      () => (informer.list().length === 0 ? show(undefined) : undefined),
      () => undefined,
    );
    const giveUp = (): void =>
      done.reject(new CommandError(`timed out waiting for the condition${late === undefined ? '' : `: ${late()}`}`));
    const timer = timeoutMs === 0 ? undefined : setTimeout(giveUp, timeoutMs);
    const running = informer.run(ended.signal);
    try {
      await done.promise;
    } finally {
      clearTimeout(timer);
      ended.abort();
      await Promise.all([running, first]);
    }
  }

  /**
   * The objects that are selected, kept up to date while it is run. Outages of the server are waited for; `watched` makes of where they come
   * from what is to be read instead.
   */
  informer<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    { indexes, watched = (source) => source }: InformerExtras<T> = {},
  ): ReflectedInformer<T> {
    const source = watched(new HttpListWatch({ transport: this.transport, resource, selection }));
    return new ReflectedInformer({ source, clock: this.#clock, log: silentLogger, cluster: CONTROL, indexes });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#notice.end();
    await this.transport.close();
  }
}
