import type { APIAnswer, APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';

/** Server-side apply of an object that does not exist, as every apply begins, and of a namespace; of anything else that exists it is not simulated. */
export function createdByApply(server: SimulatedAPIServer, request: APIRequest): APIAnswer {
  const [url = ''] = request.path.split('?', 1);
  const present = server.handle({ method: 'GET', path: url });
  if (present.code === 200) return /^\/api\/v1\/namespaces\/[^/]+$/.test(url) ? present : server.handle(request);
  return server.handle({ method: 'POST', path: url.slice(0, url.lastIndexOf('/')), body: request.body });
}

/** Server-side apply of an object that only one applies, and always whole: it is replaced, or created where there is none. */
export function upserted(server: SimulatedAPIServer, { path, body }: APIRequest): APIAnswer {
  const [url = ''] = path.split('?', 1);
  const replaced = server.handle({ method: 'PUT', path: url, body });
  if (replaced.code !== 404) return replaced;
  return server.handle({ method: 'POST', path: url.slice(0, url.lastIndexOf('/')), body });
}
