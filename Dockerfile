FROM python:3.12.12-slim-trixie

# A slide as PNG is drawn with the fonts of the image.
RUN apt-get update && apt-get install --yes --no-install-recommends fonts-dejavu-core fonts-noto-color-emoji \
  && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home pairseek
WORKDIR /srv
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir --constraint constraints.txt '.[cli,web,postgres,data]' \
  && rm -rf src pyproject.toml README.md LICENSE constraints.txt
# Root compiles the kernels, once, and every user may run them.
ENV NUMBA_CACHE_DIR=/srv/kernels \
    PAIRSEEK_DATABASE=/data/pairseek.db
RUN mkdir kernels && pairseek warm
RUN mkdir /data && chown pairseek /data
USER pairseek
VOLUME /data
EXPOSE 8421
# By default the first check comes after half a minute, and the proxy of compose.yaml waits for it.
HEALTHCHECK --interval=5s --timeout=6s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8421/readyz', timeout=5)"]
ENTRYPOINT ["pairseek"]
CMD ["serve", "--host", "0.0.0.0", "--workers", "2"]
