import { randomBytes } from 'node:crypto';

import type { APIAnswer, APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { builtIn, type Kind } from '../api-server/kinds.ts';
import { keyOf } from '../api-server/stored-object.ts';
import { AGE, NAME } from '../api-server/table/column.ts';
import type { User } from './users.ts';

/** ServiceAccounts, as objects. */
export const ACCOUNT_KIND: Kind = builtIn('v1', 'serviceaccounts', 'ServiceAccount', { columns: [NAME, AGE] });

const TOKEN_REQUEST = /^\/api\/v1\/namespaces\/([^/?]+)\/serviceaccounts\/([^/?]+)\/token$/;

interface Account {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Each namespace has a service account `default`, and each service account has tokens on request, which hold while it exists. */
export class ServiceAccounts {
  readonly #server: SimulatedAPIServer;
  readonly #accounts = new Map<string, Account>();

  constructor(server: SimulatedAPIServer) {
    this.#server = server;
    server.objects.onChange(({ plural }, { type, object }) => {
      if (plural !== 'namespaces' || type !== 'ADDED') return;
      server.handle(creation(`/api/v1/namespaces/${object.metadata.name}/serviceaccounts`, 'default'));
    });
  }

  /** Answers a TokenRequest; undefined: the request is none. */
  tokenFor({ method, path, body }: APIRequest): APIAnswer | undefined {
    const [, namespace = '', name = ''] = (method === 'POST' && TOKEN_REQUEST.exec(path)) || [];
    if (name === '') return undefined;
    const found = this.#server.handle({ method: 'GET', path: path.slice(0, -'/token'.length) });
    const uid = this.#uidOf({ namespace, name });
    if (uid === undefined) return found;
    const token = randomBytes(24).toString('hex');
    this.#accounts.set(token, { namespace, name, uid });
    return { code: 201, body: { kind: 'TokenRequest', ...(body as object), status: { token } } };
  }

  /** Whose token it is; undefined: nobody's, or that of an account that is gone. */
  userOf(token: string): User | undefined {
    const account = this.#accounts.get(token);
    if (account === undefined || this.#uidOf(account) !== account.uid) return undefined;
    const { namespace, name } = account;
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    return { user: `system:serviceaccount:${namespace}:${name}`, groups };
  }

  #uidOf(account: Pick<Account, 'namespace' | 'name'>): string | undefined {
    return this.#server.objects.of(ACCOUNT_KIND).get(keyOf(account))?.metadata.uid;
  }
}

/** The request that makes an object of which nothing matters but its name. */
export function creation(path: string, name: string): APIRequest {
  return { method: 'POST', path, body: { metadata: { name } } };
}
