import * as fc from 'fast-check';

/*
 * Loaded before each unit test file: properties try the same cases in every run, so that a change that lands has not been
 * lucky and one that does not has not been unlucky. `MACHINIST_PROPERTY_SEED` takes another number, or `random`, to search on.
 */
const seed = process.env['MACHINIST_PROPERTY_SEED'] ?? '20261122';
if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });
