import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Preconditions } from '../../pkg/kube/client/client.ts';

/** What is noted: bodies only of what destroys. */
const RULES = {
  /** Mutations only: Events have no consequences, and reviews are questions. */
  mutations: `  - { level: None, resources: [{ group: "", resources: [events] }, { group: authorization.k8s.io }] }
  - { level: Request, verbs: [delete] }
  - { level: Request, resources: [{ group: "", resources: [pods/eviction] }] }
  - { level: Metadata, verbs: [create, update, patch, delete, deletecollection] }
`,
  /** All requests for objects. */
  everything: `  - { level: None, nonResourceURLs: ["*"] }
  - { level: Metadata }
`,
};

function policyOf(what: keyof typeof RULES): string {
  return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
${RULES[what]}`;
}

/** One mutation that the API server has answered. */
export interface AuditedMutation {
  readonly verb: string;
  readonly uri: string;
  readonly code: number;
  /** When the request arrived, in ms since the epoch. */
  readonly receivedMs: number;
  /** Groups of who sent it. */
  readonly groups: readonly string[];
  /** Of a deletion or an eviction: what the object must be, or the server refuses. */
  readonly preconditions: Partial<Preconditions>;
}

/** One request for objects that the API server has answered. */
export interface AuditedRequest {
  readonly user: string;
  readonly verb: string;
  readonly group: string;
  /** With the subresource after a slash. */
  readonly resource: string;
  /** Empty in a request that names no object. */
  readonly name: string;
  readonly code: number;
}

interface DeleteOptions {
  readonly preconditions?: Partial<Preconditions>;
}

interface AuditLine {
  readonly requestObject?: DeleteOptions & { readonly deleteOptions?: DeleteOptions };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly name?: string;
  };
  readonly verb: string;
  readonly requestURI: string;
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly username?: string; readonly groups?: readonly string[] };
}

/** What an API server notes: who asked for what, and when. */
export class Audit implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'machinist-audit-'));

  constructor(what: keyof typeof RULES = 'mutations') {
    writeFileSync(join(this.#directory, 'policy.yaml'), policyOf(what));
  }

  /** For kube-apiserver. */
  get arguments(): readonly string[] {
    return [`--audit-policy-file=${join(this.#directory, 'policy.yaml')}`, `--audit-log-path=${this.#log}`];
  }

  /** All mutations so far, in the order of their answers. */
  mutations(): readonly AuditedMutation[] {
    return this.#lines().map(({ verb, requestURI, responseStatus, requestReceivedTimestamp, user, requestObject }) => ({
      verb,
      uri: requestURI,
      code: responseStatus?.code ?? 0,
      receivedMs: Date.parse(requestReceivedTimestamp),
      groups: user.groups ?? [],
      preconditions: requestObject?.deleteOptions?.preconditions ?? requestObject?.preconditions ?? {},
    }));
  }

  /** All requests for objects so far, in the order of their answers; of an audit of everything. */
  requests(): readonly AuditedRequest[] {
    return this.#lines().map(({ verb, responseStatus, user, objectRef = {} }) => {
      const { apiGroup: group = '', resource = '', subresource, name = '' } = objectRef;
      const path = subresource === undefined ? resource : `${resource}/${subresource}`;
      return { user: user.username ?? '', verb, group, resource: path, name, code: responseStatus?.code ?? 0 };
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #lines(): readonly AuditLine[] {
    const lines = readFileSync(this.#log, 'utf8').split('\n').slice(0, -1); // the last one may not be whole
    return lines.map((line) => JSON.parse(line) as AuditLine); // the server's
  }

  get #log(): string {
    return join(this.#directory, 'audit.jsonl');
  }
}
