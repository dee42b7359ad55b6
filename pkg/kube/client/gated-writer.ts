import type { KubeObject, Status } from '../../apis/meta.ts';
import type { Pod } from '../../apis/wire.ts';
import type { Admission, Cluster, Gate, Intent } from '../gate/gate.ts';
import { addressOf } from './address.ts';
import type { WriteOptions, DeleteOptions, ObjectIdentity, New, ObjectRef, Preconditions, Writer } from './client.ts';
import { ApiError, isNotFound } from './errors.ts';
import type { Interceptor } from '../gate/interceptor.ts';
import { MUTATE } from './mutate.ts';
import type { Patch, PatchType } from './patch.ts';
import { apiVersionOf, normalised, pods } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';
import { asServed } from './served-versions.ts';
import type { GatedCall, Transport } from './transport.ts';
import { wireChange } from './wire-change.ts';

/** Learns what our writes did before any watch tells; the caches. Must not throw. */
export interface WriteObserver {
  wrote<T extends KubeObject>(resource: Resource<T>, object: T): void;
  deleted(resource: Resource<KubeObject>, object: ObjectIdentity): void;
}

export interface GatedWriterOptions {
  readonly transport: Transport;
  readonly gate: Gate;
  /** The cluster that this writer writes to; the gate is asked about it. */
  readonly cluster: Cluster;
  /** For whom it writes, see Transport. */
  readonly flow?: string | undefined;
  readonly observer?: WriteObserver | undefined;
  readonly intercept?: Interceptor | undefined;
}

const CONTENT_TYPE: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/** Mutations of one cluster. Nothing is sent that the gate did not admit, and nothing outlives the leadership that it was admitted under. */
export class GatedWriter implements Writer {
  readonly #options: GatedWriterOptions;

  constructor(options: GatedWriterOptions) {
    this.#options = options;
  }

  async create<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    object: New<T>,
    options: WriteOptions = {},
  ): Promise<T> {
    const { namespace } = object.metadata;
    return await asServed(this.#options.transport, resource, options.signal, async (served) => {
      const created = await this.#send<T>(intent, options, object.metadata, {
        method: 'POST',
        verb: 'create',
        address: addressOf(served, { namespace }),
        body: { apiVersion: apiVersionOf(served), kind: resource.kind, ...(served.toWire?.(object) ?? object) },
      });
      this.#options.observer?.wrote(resource, normalised(served, created));
      return created;
    });
  }

  async patch<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: WriteOptions = {},
  ): Promise<T> {
    const { type, subresource, base } = patch;
    return await asServed(this.#options.transport, resource, options.signal, async (served) => {
      const body = served === resource ? patch.body : wireChange(served, patch);
      // Of what it says the dialect has nothing: the object is as it was.
      if (body === undefined) return base as T;
      const patched = await this.#send<T>(intent, options, ref, {
        method: 'PATCH',
        verb: 'patch',
        address: addressOf(served, { ...ref, subresource }),
        contentType: CONTENT_TYPE[type],
        body,
      }).catch((err: unknown) => {
        throw conflictOfUid(err);
      });
      // The scale subresource answers with a Scale, which is not the object.
      if (subresource !== 'scale') this.#learn(resource, normalised(served, patched));
      return patched;
    });
  }

  async delete<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    preconditions: Preconditions,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    const { gracePeriodSeconds, propagationPolicy } = options;
    const gone: ObjectIdentity = { metadata: { ...ref, uid: preconditions.uid } };
    return await asServed(this.#options.transport, resource, options.signal, async (served) => {
      const answer = await this.#send<T | Status>(intent, options, ref, {
        method: 'DELETE',
        verb: 'delete',
        address: addressOf(served, ref),
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, gracePeriodSeconds, propagationPolicy },
      }).catch((err: unknown) => {
        if (isNotFound(err)) this.#options.observer?.deleted(resource, gone);
        throw err;
      });
      if (isObject(answer) && !isGone(answer)) {
        this.#learn(resource, normalised(served, answer));
        return answer;
      }
      this.#options.observer?.deleted(resource, gone);
      return undefined;
    });
  }

  async evict(pod: Pod, options: WriteOptions & { readonly gracePeriodSeconds?: number } = {}): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const { gracePeriodSeconds } = options;
    const deleteOptions = { preconditions: { uid }, gracePeriodSeconds };
    await this.#send<Status>('destroy', options, pod.metadata, {
      method: 'POST',
      verb: 'create',
      address: addressOf(pods, { namespace, name, subresource: 'eviction' }),
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions },
      retryTooManyRequests: 'never',
    });
  }

  #send<T>(
    intent: Intent,
    { signal, timeoutMs, clusters = [] }: WriteOptions,
    { namespace, name }: ObjectRef,
    call: Omit<GatedCall, 'admit'>,
  ): Promise<T> {
    const { transport, gate, cluster, flow, intercept } = this.#options;
    let admission: Admission | undefined;
    const admit = async (waiting: AbortSignal): Promise<number> => {
      admission = await gate.admit(intent, [cluster, ...clusters], waiting);
      return admission.remainingMs;
    };
    const admittedMs = (): number | undefined => admission?.leftMs?.();
    const send = async (): Promise<T> => {
      try {
        return await transport[MUTATE]<T>({ ...call, flow, signal, timeoutMs, admit, admittedMs });
      } catch (err) {
        if (err instanceof ApiError) err.object = `${call.address.label}/${name}`;
        throw err;
      }
    };
    if (intercept === undefined) return send();
    const key = namespace === undefined ? name : `${namespace}/${name}`;
    return intercept({ text: `${call.method} ${call.address.label} ${key}` }, send);
  }

  /** A patch that takes the last finalizer of an object being deleted is answered with the object, which is gone then. */
  #learn<T extends KubeObject>(resource: Resource<T>, answer: T): void {
    if (isGone(answer)) this.#options.observer?.deleted(resource, answer);
    else this.#options.observer?.wrote(resource, answer);
  }
}

/** Whether an answer to a DELETE or PATCH shows an object that nothing holds any more. */
function isGone({ metadata }: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = metadata;
  if (deletionTimestamp === undefined) return false;
  return (finalizers ?? []).length === 0 && (deletionGracePeriodSeconds ?? 0) === 0;
}

function isObject<T extends KubeObject>(answer: T | Status | undefined): answer is T {
  return answer !== undefined && (answer as Status).kind !== 'Status';
}

/** The server says "immutable field" (422) when a merge patch names another UID; for us it is a lost precondition. */
function conflictOfUid(err: unknown): unknown {
  if (!ApiError.is(err, 'Invalid')) return err;
  const isUid = err.status?.details?.causes?.some((cause) => cause.field === 'metadata.uid') ?? false;
  return isUid
    ? new ApiError(409, 'Conflict', err.message, { cause: err, ...(err.status && { status: err.status }) })
    : err;
}
