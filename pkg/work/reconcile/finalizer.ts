import { hasFinalizer, withFinalizer, withoutFinalizer } from '../../apis/finalizers.ts';
import { refOf, type KubeObject } from '../../apis/meta.ts';
import { CONTROL, type Intent } from '../../kube/gate/gate.ts';
import type { WriteOptions, Writer } from '../../kube/client/client.ts';
import { mergePatchIfUnchanged } from '../../kube/client/patch.ts';
import type { Resource } from '../../apis/resource.ts';

/** The finalizer of a controller on objects of one kind, written on its own; passes that write more change their copy with apis/finalizers.ts. */
export class Finalizer<T extends KubeObject> {
  readonly #writer: Pick<Writer, 'patch'>;
  readonly #resource: Resource<T>;
  readonly #name: string;

  constructor(writer: Pick<Writer, 'patch'>, resource: Resource<T>, name: string) {
    this.#writer = writer;
    this.#resource = resource;
    this.#name = name;
  }

  holds(object: T): boolean {
    return hasFinalizer(object, this.#name);
  }

  /** Resolves with the object that has the finalizer: this one, or what the API server returned. Throws ApiError and GateClosedError. */
  async add(object: T, signal: AbortSignal): Promise<T> {
    return this.holds(object) ? object : await this.#write('change', object, withFinalizer(object, this.#name), signal);
  }

  /**
   * With the last finalizer, the object is removed. `destroy` where nothing else remembers what the object is about: the gate then requires
   * proof that the control cluster is alive. Throws ApiError, also NotFound, and GateClosedError.
   */
  async remove(object: T, signal: AbortSignal, intent: Extract<Intent, 'change' | 'destroy'> = 'change'): Promise<T> {
    return await this.#write(intent, object, withoutFinalizer(object, this.#name), signal);
  }

  /** The list is replaced whole: only the one that was read may be. */
  async #write(intent: Intent, object: T, finalizers: string[], signal: AbortSignal): Promise<T> {
    const patch = mergePatchIfUnchanged<KubeObject>(object, { metadata: { finalizers } });
    const options: WriteOptions = intent === 'destroy' ? { signal, clusters: [CONTROL] } : { signal };
    return await this.#writer.patch(intent, this.#resource, refOf(object), patch, options);
  }
}
