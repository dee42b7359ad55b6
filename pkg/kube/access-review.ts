import { addressOf } from './address.ts';
import type { CallOptions } from './client.ts';
import { apiVersionOf, selfSubjectAccessReviews } from './resource.ts';
import type { Transport } from './transport.ts';

/** What somebody may do, in the words of a SelfSubjectAccessReview. Without `namespace`: in all of them, or of what is in none. */
export interface AccessAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Asks an API server what we may do there. */
export class AccessReviewer {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Past the rate limit: it is asked of a server before anything else is. Throws ApiError. */
  async mayI(resourceAttributes: AccessAttributes, options: CallOptions = {}): Promise<boolean> {
    const answer = await this.#transport.review<{ status?: { allowed?: unknown } } | undefined>({
      method: 'POST',
      verb: 'create',
      lane: 'probes',
      address: addressOf(selfSubjectAccessReviews, {}),
      body: {
        apiVersion: apiVersionOf(selfSubjectAccessReviews),
        kind: selfSubjectAccessReviews.kind,
        spec: { resourceAttributes },
      },
      ...options,
    });
    return answer?.status?.allowed === true;
  }
}
