import type { KubeObject } from '../../apis/meta.ts';
import type { AccessAttributes, ResourceRule } from './access-rules.ts';
import { addressOf } from './address.ts';
import type { CallOptions } from './client.ts';
import { apiVersionOf, selfSubjectAccessReviews, selfSubjectRulesReviews } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Transport } from './transport.ts';

/** Asks an API server what we may do there. Past the rate limit: it is asked before anything else is. */
export class AccessReviewer {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Whether we may do one thing. Throws ApiError. */
  async mayI(resourceAttributes: AccessAttributes, options: CallOptions = {}): Promise<boolean> {
    const status = await this.#ask(selfSubjectAccessReviews, { resourceAttributes }, options);
    return status?.['allowed'] === true;
  }

  /**
   * What we may do in a namespace, as far as the authorizers of the server can list it: RBAC can, webhooks cannot. What it leaves out
   * has to be asked for one by one. The namespace need not exist: what is granted there is granted everywhere then. Throws ApiError.
   */
  async rulesIn(namespace: string, options: CallOptions = {}): Promise<readonly ResourceRule[]> {
    const status = await this.#ask(selfSubjectRulesReviews, { namespace }, options);
    const rules = status?.['resourceRules'];
    return Array.isArray(rules) ? (rules as ResourceRule[]) : []; // by the API, of which only what is there is read
  }

  async #ask(
    resource: Resource<KubeObject>,
    spec: unknown,
    options: CallOptions,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    const body = { apiVersion: apiVersionOf(resource), kind: resource.kind, spec };
    const answer = await this.#transport.review<{ status?: Readonly<Record<string, unknown>> } | undefined>({
      method: 'POST',
      verb: 'create',
      lane: 'probes',
      address: addressOf(resource, {}),
      body,
      ...options,
    });
    return answer?.status;
  }
}
