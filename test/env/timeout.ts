import { jest } from '@jest/globals';

/** Loaded before each test file of the levels with a server: jest's 5 s are made for tests without one, on a host that nobody shares. */
jest.setTimeout(180_000);
