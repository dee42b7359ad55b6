import type { APIRequest } from '../api-server/api-server.ts';
import { at, type Members } from '../api-server/json.ts';
import { machine } from './objects.ts';
import { del, get, type Given, merge, post, put, type Row } from './row.ts';

const NAME = 'ending';
const named = ({ prefix }: Given): object => ({ metadata: { name: `${prefix}${NAME}` } });

function inside(title: string, of: (namespace: string) => APIRequest): Row {
  return { title, request: ({ prefix }) => of(`${prefix}${NAME}`) };
}

const create = (title: string, root: string, plural: string, body: object): Row =>
  inside(title, (namespace) => ({ method: 'POST', path: `${root}/namespaces/${namespace}/${plural}`, body }));

const MACHINES = '/apis/machine.sapcloud.io/v1alpha1';
const configMap = (name: string): object => ({ metadata: { name } });
/** As the namespace controller sends it. */
const emptied = (given: Given): object => {
  const { spec: _spec, ...saved } = given.saved(NAME) as Members;
  return { ...saved, metadata: at(given.saved(NAME), ['metadata']), spec: { finalizers: [] } };
};

/** Deletion of a Namespace, which is not emptied meanwhile. */
export const NAMESPACE_ROWS: readonly Row[] = [
  post('a namespace to be deleted', 'namespaces', named),
  create('something in it', '/api/v1', 'configmaps', configMap('before')),
  merge('a namespace cannot be rid of what it waits for', `namespaces/${NAME}`, { spec: { finalizers: null } }),
  del('a namespace with something in it', `namespaces/${NAME}`),
  del('the same again', `namespaces/${NAME}`, undefined, { save: NAME }),
  get('a namespace that is being deleted', `namespaces/${NAME}`),
  create('something new in it', '/api/v1', 'configmaps', configMap('after')),
  create('a Machine in it', MACHINES, 'machines', machine('after')),
  inside('a change in it', (namespace) => ({
    method: 'PATCH',
    path: `/api/v1/namespaces/${namespace}/configmaps/before`,
    body: { data: { a: 'b' } },
    contentType: 'application/merge-patch+json',
  })),
  inside('the removal of something in it', (namespace) => ({
    method: 'DELETE',
    path: `/api/v1/namespaces/${namespace}/configmaps/before`,
  })),
  merge('a label of a namespace that is being deleted', `namespaces/${NAME}`, { metadata: { labels: { a: 'b' } } }),
  put('an old state of it as emptied', `namespaces/${NAME}/finalize`, emptied),
  get('it stays', `namespaces/${NAME}`, { save: NAME }),
  put('it is emptied', `namespaces/${NAME}/finalize`, emptied),
  get('it is gone', `namespaces/${NAME}`),
  create('something in what is gone', '/api/v1', 'configmaps', configMap('later')),
];
